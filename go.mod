module github.com/xxljob/xxljob

go 1.26.0

require (
	github.com/adhocore/gronx v1.20.4
	github.com/gofrs/flock v0.13.2
	github.com/hashicorp/go-memdb v1.3.5
	github.com/jackc/pgx/v5 v5.12.0
	github.com/wneessen/go-mail v0.8.1
	golang.org/x/crypto v0.54.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/hashicorp/go-immutable-radix v1.3.1 // indirect
	github.com/hashicorp/golang-lru v0.5.4 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
