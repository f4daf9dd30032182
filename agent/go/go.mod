module tracecollect.invalid/traceagent

go 1.22
