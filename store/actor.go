package store

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xxljob/xxljob/internal/errs"
)

// Scheduler is the actor of what no caller has asked for: jobs that the scheduler stops or
// prunes, and days of runs that it drops.
const Scheduler = "scheduler"

// Kinds of objects that entries of the record of changes are about. The first four are those
// of stores; the others are for consoles, which may have more.
const (
	ObjectJob     = "job"
	ObjectRun     = "run"
	ObjectApp     = "app"
	ObjectRuns    = "runs" // of a day, as 2006-01-02, or those that a deletion chose, without an ID
	ObjectUser    = "user"
	ObjectToken   = "token"
	ObjectSession = "session"
	ObjectLogin   = "login"
)

// The bounds of an Origin, in bytes. What is longer is cut, and the cut marked by "...".
const (
	MostActor     = 255
	MostClient    = 255
	MostRequestID = 128
)

// Origin is who asks for a change, and from where.
type Origin struct {
	// Actor is the name of a user, a token or a service; empty where none was given.
	Actor string
	// Client is the address of the client, RequestID what its request is known by.
	Client, RequestID string
}

type (
	originKey struct{}
	againKey  struct{}
)

// WithActor returns a context whose changes are recorded under the name: that of a user, or of
// the program that makes them. It is kept to MostActor bytes, and what cannot be shown of
// it is replaced. Changes of jobs and apps are recorded without a name too; runs that are
// triggered or killed only with one, since programs may trigger thousands. It panics
// where ctx is nil, as context.WithValue does: there is no error to return. Stores read the
// name with Actor.
func WithActor(ctx context.Context, name string) context.Context {
	if ctx == nil {
		panic(errs.ErrNoContext)
	}
	o := OriginOf(ctx)
	o.Actor = Shown(name, MostActor)
	return context.WithValue(ctx, originKey{}, o)
}

// WithClient returns a context whose changes are recorded with the address of the client that
// has asked for them, and what its request is known by; either may be empty. They are kept to
// MostClient and MostRequestID bytes as names are. It panics where ctx is nil.
func WithClient(ctx context.Context, address, requestID string) context.Context {
	if ctx == nil {
		panic(errs.ErrNoContext)
	}
	o := OriginOf(ctx)
	o.Client, o.RequestID = Shown(address, MostClient), Shown(requestID, MostRequestID)
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf returns what xxljob.WithActor and xxljob.WithClient put into ctx, within the bounds
// above and without control characters; the zero value for a nil ctx too.
func OriginOf(ctx context.Context) Origin {
	if ctx == nil {
		return Origin{}
	}
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// Actor returns the name that xxljob.WithActor put into ctx, or "", for a nil ctx too.
func Actor(ctx context.Context) string { return OriginOf(ctx).Actor }

// WithAgain says that a trigger asks for the run once more, so that its entry in the record
// of changes can say so.
func WithAgain(ctx context.Context, runID int64) context.Context {
	return context.WithValue(ctx, againKey{}, runID)
}

// Again returns the run that WithAgain put into ctx, or 0, for a nil ctx too.
func Again(ctx context.Context) int64 {
	if ctx == nil {
		return 0
	}
	id, _ := ctx.Value(againKey{}).(int64)
	return id
}

// Shown is text that every store can keep and every page can show, of at most so many bytes:
// what is cut is marked by "...", and what cannot be seen is replaced by question marks.
func Shown(s string, most int) string {
	const cut = "..."
	if len(s) > most {
		n := most - len(cut)
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + cut
	}
	replaced := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	return replaced
}
