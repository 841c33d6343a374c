module github.com/xxljob/xxljob/examples/from-cron

go 1.26.0

require (
	github.com/robfig/cron/v3 v3.0.1
	github.com/xxljob/xxljob v0.0.0
)

require (
	github.com/adhocore/gronx v1.20.4 // indirect
	github.com/gofrs/flock v0.13.2 // indirect
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/go-memdb v1.3.5 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/xxljob/xxljob => ../..
