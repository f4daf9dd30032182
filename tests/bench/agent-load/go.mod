module tracecollect/tests/bench/agent-load

go 1.22

require tracecollect/agent/go v0.0.0

replace tracecollect/agent/go => ../../../agent/go
