// Package chaos injects faults into a cluster of real scheduler processes over a
// real Postgres, and has an auditor judge what became of every due instant.
//
//	make chaos
//	go run ./internal/test/chaos/cmd -short
//	go run ./internal/test/chaos/cmd -faults sigkill,lock -for 60s -seed 7 -keep
//
// In: a list of faults and a seed. Out: a table with a row for each fault, and
// exit code 1 if anything was lost, doubled, early, unfinished, or interrupted
// without a fault that explains it; if a run was late, or out of its order, that a
// killed or paused node had not taken; if a planned run was held by nobody; or if a due run
// waited for long while its node, which lived, said nothing of it in Ready or Troubles. Some
// jobs have handlers that fail, hang, panic, snooze or end their process: each of
// their runs has exactly the follower that the job's settings ask for, at its time,
// and a second table counts these by what they follow. The successes of some lead to other
// jobs: each child and each complete window has one run. What fails for good, is lost,
// skipped or late has one alarm, which comes to a server of HTTP and one of SMTP that refuse
// and hang half of the time; a third table counts all of these. One cluster is shared by two
// services: while one is away its jobs wait for it or are refused, as they say; it has a router and
// a rule of alarms that the other does not know.
//
// The parts know little of each other:
//
//   - audit judges. It imports nothing of the scheduler, and works out by itself
//     when each job was due.
//   - node is the program of a node process: a scheduler whose handlers write down
//     each start and each end in a file of their own.
//   - control is how node processes are asked to do something.
//   - sink has the servers that are told of alarms. They outlive the nodes.
//   - proxy stands between a node and the database.
//   - this package starts and hits them, and keeps the journal of what it did.
//
// What of the database's tables it has to know is in table.go.
package chaos
