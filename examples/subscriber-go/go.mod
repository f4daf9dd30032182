module tracecollect/examples/subscriber-go

go 1.22

require google.golang.org/protobuf v1.36.6
