package xxljob

// What is known of the addresses of apps, and for how long it is good.

import (
	"context"

	"github.com/xxljob/xxljob/wire"
)

// addressBook knows which addresses may run a handler of an app.
type addressBook struct {
	s        *shared
	attached *attachedSet
	remotes  *remotes
	users    *userCalls                  // of a registry of the user's
	register func(context.Context) error // registers this node's executors there
	memory   *addressMemory
}

// sameAddress compares two addresses whatever their spelling.
func sameAddress(a, b string) bool { return a == b || wire.NormalAddress(a) == wire.NormalAddress(b) }

// bookKeyOf is what a job's addresses go by.
func bookKeyOf(job *Job) bookKey { return bookKey{job.App, job.Handler, job.GlueType} }

func (k bookKey) isBean() bool { return k.glue == GlueBean || k.glue == "" }
