package xxljob

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// attacher attaches executors of this process, and says to others which there are.
type attacher struct {
	*shared
	attached *attachedSet
	own      *executor.Executor
	memory   *addressMemory
	admin    wire.Admin // of the executors that are attached
	moved    func()     // called where this node offers something else
	panics   *guard.Log
}

// attachments is what this node tells the others about its executors.
func (a *attacher) attachments() []store.Attachment {
	if a.life.draining.Load() {
		return nil
	}
	return a.offered()
}

// offered are the executors of this process and their handlers.
func (a *attacher) offered() []store.Attachment {
	all := []store.Attachment{} // nil would say that the node is resting
	for _, e := range a.attached.all() {
		handlers := slices.Sorted(slices.Values(e.Handlers()))
		if e == Executor(a.own) && len(handlers) == 0 {
			continue // a node that only schedules offers nothing
		}
		all = append(all, store.Attachment{App: e.App(), Handlers: handlers})
	}
	return all
}

func (a *attacher) Attach(e Executor) error {
	if e == nil {
		return errors.New("xxljob: attach: the executor is nil")
	}
	e, err := guardExecutor(e, a.panics)
	if err == nil {
		err = a.attached.add(e)
	}
	if err != nil {
		return err
	}
	if err := bind(e, a.admin); err != nil {
		a.attached.drop(e)
		return fmt.Errorf("xxljob: attach: app %q: Bind: %w", e.App(), err)
	}
	a.attachedMoved()
	return nil
}

func (a *attacher) Handle(name string, h executor.Handler, opts ...executor.HandlerOption) error {
	err := a.own.Handle(name, h, opts...)
	if errors.Is(err, executor.ErrStopped) {
		return fmt.Errorf("%w: %w", ErrStopped, err)
	}
	if err != nil {
		return err
	}
	a.attachedMoved()
	return nil
}

// attachedMoved spreads the news that this node offers something else.
func (a *attacher) attachedMoved() {
	a.memory.forget()
	a.life.wakes.lease.poke()
	a.life.wakes.attachedChanged.poke()
	a.life.wakes.inbox.poke()
	if a.life.running() {
		a.moved()
	}
}
