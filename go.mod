module github.com/xxljob/xxljob

go 1.26.0

require (
	github.com/adhocore/gronx v1.20.4
	github.com/hashicorp/go-memdb v1.3.5
	golang.org/x/sync v0.24.0
)

require (
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
)
