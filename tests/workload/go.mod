module tracecollect/tests/workload

go 1.22
