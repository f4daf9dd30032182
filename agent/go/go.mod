module tracecollect/agent/go

go 1.22
