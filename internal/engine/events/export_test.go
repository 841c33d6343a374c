package events

import (
	"log/slog"
	"sync"

	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/store"
)

// HooksWaiting is how many calls of hooks wait at most.
const HooksWaiting = hooksWaiting

// HookCalls is a queue of calls of hooks that belongs to no scheduler.
func HookCalls() (call func(hook func(store.Run), run store.Run)) {
	var hooks sync.Map // by run
	q := &eventQueue{log: slog.New(slog.DiscardHandler), tell: func(w *waitingEvent) {
		hook, _ := hooks.Load(w.Run)
		hook.(func(store.Run))(*w.Run)
	}}
	return func(hook func(store.Run), run store.Run) {
		hooks.Store(&run, hook)
		q.add(waitingEvent{Event: core.Event{Kind: core.EventRunStarted, Run: &run}})
	}
}
