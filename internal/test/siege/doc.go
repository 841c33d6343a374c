// Package siege has one app that is up to no good put a scheduler under load, beside an
// honest app whose heartbeats and results are measured.
//
//	make siege
//	go run ./internal/test/siege/cmd -for 2m -attacks flood
//
// In: how long, which attacks, a seed. Out: a line a minute, and exit code 1 unless the
// honest app was served as promised: see package judge.
//
// Three processes, so that each has a heap and CPU time of its own, and a Postgres:
//
//   - the scheduler (node.go, lost.go), with the store in Postgres, behind an http.Server
//     on the loopback, beside the console. It reports its live heap and goroutines each second.
//   - the hostile app (hostile.go, attack_*.go, pages.go), which has a valid token and
//     runs of its own, some of them ended as lost.
//   - the program itself (run.go): it is the honest app (honest.go) and an admin at the console
//     (honest_console.go), starts the others
//     (child.go), hangs the store where that is asked for (stall.go), and judges.
//
// The hostile load is paced by rates: what saturates the machine says how fast the machine
// is, not what one app can do to another. The CPU time of all is printed (cpu.go).
package siege
