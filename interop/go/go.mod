// A module of its own, so that the library does not depend on what it is tested
// against.
module github.com/xxljob/xxljob/interop/go

go 1.25

require github.com/xxl-job/xxl-job-executor-go v1.2.0

require github.com/go-basic/ipv4 v1.0.0 // indirect
