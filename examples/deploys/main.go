// Command deploys tells what becomes of jobs while releases of a service come and go: a
// rolling deploy, where two releases live side by side, and the way back. It ends by itself.
//
//	go run ./examples/deploys
//
// A service does what replica.go does, with the number of its build; its replicas share a
// Postgres instead of the memory of one process.
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/store/memory"
)

// pruneAfter is short, so that the story is. It is ten minutes by default: longer than a
// deploy takes, and than a replica needs to come back.
const pruneAfter = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := tell(ctx, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// release is what one build of the service wants, and can do.
type release struct {
	build int64
	jobs  []xxljob.Job
}

// tell tells the story.
func tell(ctx context.Context, out io.Writer) error {
	former := release{41, []xxljob.Job{
		{Key: "expire", Name: "Expire orders", Handler: "expire", Schedule: xxljob.Crontab("*/10 * * * *")},
		{Key: "remind", Name: "Send reminders", Handler: "remind", Schedule: xxljob.Crontab("0 9 * * *")},
	}}
	later := release{42, []xxljob.Job{
		{Key: "expire", Name: "Expire orders", Handler: "expire", Schedule: xxljob.Crontab("* * * * *")}, // more often
		{Key: "report", Name: "Write the report", Handler: "report", Schedule: xxljob.Crontab("0 3 * * *")},
	}}
	s := &story{service: service{store: memory.New(), out: out, replicas: map[string]xxljob.Scheduler{}}}

	s.say("Release 41: two replicas say the same, and the second has nothing to do.")
	s.start(ctx, "a", former)
	s.start(ctx, "b", former)
	s.show(ctx)

	s.say("Release 42 is rolled out, and its first replica runs beside those of 41.",
		"Its list applies. What only 41 wants goes on, for 41 lives.")
	s.start(ctx, "c", later)
	s.show(ctx)

	s.say("A replica of 41 restarts in the middle of that. It changes nothing.")
	s.stop(ctx, "b")
	s.start(ctx, "b", former)
	s.show(ctx)

	s.say("The deploy ends. No replica that lives wants reminders:",
		"they are stopped PruneAfter later.")
	s.stop(ctx, "a")
	s.start(ctx, "d", later)
	s.stop(ctx, "b")
	s.awaitPruned(ctx, "remind")
	s.show(ctx)

	s.say("Release 42 was a mistake. Its replicas go, and 41 comes back with Rollback:",
		"its list applies at once, and reminders go on. Without Rollback it would have",
		"waited for PruneAfter, in case 42 was only restarting.")
	s.stop(ctx, "c")
	s.stop(ctx, "d")
	s.rollBack(ctx, "a", former)
	s.show(ctx)

	s.say("The report is what nobody wants now.")
	s.awaitPruned(ctx, "report")
	s.show(ctx)

	return errors.Join(s.err, s.stopAll())
}
