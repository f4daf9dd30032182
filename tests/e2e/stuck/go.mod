module stuck

go 1.22

require tracecollect.invalid/traceagent v0.0.0

replace tracecollect.invalid/traceagent => ../../../agent/go
