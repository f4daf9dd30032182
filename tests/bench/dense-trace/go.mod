module tracecollect/tests/bench/dense-trace

go 1.22
