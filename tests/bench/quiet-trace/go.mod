module tracecollect/tests/bench/quiet-trace

go 1.22
