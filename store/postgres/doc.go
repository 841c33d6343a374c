// Package postgres keeps jobs and runs in Postgres, for any number of nodes.
package postgres
