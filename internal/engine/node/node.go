package node

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/engine/admin"
	"github.com/xxljob/xxljob/internal/engine/alarms"
	"github.com/xxljob/xxljob/internal/engine/catalog"
	"github.com/xxljob/xxljob/internal/engine/core"
	"github.com/xxljob/xxljob/internal/engine/dispatch"
	"github.com/xxljob/xxljob/internal/engine/events"
	"github.com/xxljob/xxljob/internal/engine/lease"
	"github.com/xxljob/xxljob/internal/engine/queue"
	"github.com/xxljob/xxljob/internal/engine/registry"
	"github.com/xxljob/xxljob/internal/engine/router"
	"github.com/xxljob/xxljob/internal/engine/runlog"
	"github.com/xxljob/xxljob/internal/engine/scan"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The parts of a scheduler, and how they are put together. The parts themselves know only
// those that they are made of.

// Node is the engine behind Scheduler: the list of its parts. Those whose methods are
// the interface's are embedded.
type Node struct {
	*core.Core
	*registry.Attacher // Attach, Handle
	*catalog.Catalog   // the verbs of definitions
	*events.Bus        // Events
	*dispatch.Killer   // Kill
	*runlog.Reader     // Log, LogTail
	*dispatch.Waiter   // Wait

	own        *executor.Executor
	users      *registry.UserCalls
	doubts     *dispatch.Unconfirmed
	Engine     *queue.Queue
	fitness    *lease.Fitness
	book       *registry.Addresses
	publisher  *registry.Advertiser
	remotes    *registry.Remotes
	Router     *router.Router
	progress   *dispatch.Progress
	finisher   *dispatch.Finisher
	keeper     *runlog.Writer // nil where Config.Logs names nothing
	watcher    *dispatch.Watcher
	acceptor   *dispatch.DispatchMarker
	inDoubt    *dispatch.InDoubt
	unreported *dispatch.Unreported
	Herald     *alarms.Notifier

	deliverer *dispatch.Deliverer
	inbox     *dispatch.Inbox
	Starter   *dispatch.Starter
	scanner   *scan.Scanner
	leaser    *leaser

	registrar *registry.Registrar
	results   *admin.Results
	speaker   *admin.Authorizer
	unread    atomic.Uint64 // requests and results that were not understood
}

// New checks the settings and makes a node that is not started.
func New(st store.Store, cfg core.Config) (*Node, error) {
	if st == nil {
		return nil, errors.New("xxljob: New: the store is nil")
	}
	cfg = cfg.WithDefaults()
	own, err := cfg.OwnExecutor()
	if err := errors.Join(cfg.Validate(), cfg.CheckLogs(st), err); err != nil {
		return nil, err
	}
	log := cfg.Logger.With("node", cfg.Node)
	all := &core.Core{
		Cfg: cfg, Store: &core.Meter{Store: st}, Logger: log, Clock: &core.Clock{}, Life: core.NewLife(), Troubles: &core.Troubles{Logger: log}, LockedOut: &core.LockedOut{},
	}
	sayRetention(st, cfg.RunRetention)
	alarms.SayAlarms(st, alarms.NewRules(cfg.Alarms))
	s := assemble(all, cfg.Node+"-"+core.RandomText(10), own)
	return s, s.Attach(own)
}

// AdminHandler is what executors elsewhere call.
func (s *Node) AdminHandler() (http.Handler, error) {
	authorize, err := s.Cfg.Authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(&admin.Admin{S: s.Core, Registrar: s.registrar, Results: s.results, Speaker: s.speaker, Definer: s.Catalog, Quota: loop.NewRateLimit()}, wire.HandlerConfig{Authorize: authorize, Logger: s.Logger, Unread: &s.unread})
}

// assemble makes the parts, each with those that it needs, from the lower floors upwards.
func assemble(all *core.Core, incarnation string, own *executor.Executor) *Node {
	s := &Node{Core: all, own: own}
	panics := guard.NewLog(func() *slog.Logger { return all.Logger })
	attached, desk := &registry.AttachedSet{}, runlog.NewDesk()
	s.Attacher = &registry.Attacher{Core: all, Attached: attached, Own: own, Panics: panics}
	all.Cfg.Tracer = core.GuardTracer(all.Cfg.Tracer, panics)
	all.Leases = lease.New(incarnation, core.TimesOf(&all.Cfg.Cluster), s.Attachments)

	s.users = registry.NewUserCalls(&all.Cfg, panics)
	s.doubts = dispatch.NewUnconfirmed(all.Life.Wakes.Lease)
	s.Engine = queue.New(all, panics)
	s.Engine.Jobs.OnChange(s.Engine.LetPassOf)
	s.Bus = events.NewBus(all, panics, s.Engine.News, s.Engine.Jobs.Job)
	all.Troubles.Tell = func(kind core.EventKind, t store.Trouble) {
		s.Happened(core.Event{Kind: kind, At: time.Now().UTC(), Trouble: &t})
	}
	s.fitness = lease.NewFitness(all.Cfg.Cluster.LeaseTTL, all.Life.Wakes.Lease)
	s.remotes = registry.NewRemotes(&all.Cfg)
	memory := registry.NewMemory(all.Cfg.Cluster.Dead)
	s.publisher = &registry.Advertiser{Core: all, Attacher: s.Attacher, Users: s.users, Memory: memory}
	s.book = &registry.Addresses{S: all, Attached: attached, Remotes: s.remotes, Users: s.users, Register: s.publisher.RegisterAttached, Memory: memory}
	callees := &router.Resolver{Incarnation: incarnation, Attached: attached, Remotes: s.remotes}
	strategies := router.NewStrategies(&all.Cfg, store.LocalAddress(incarnation))
	asked := router.NewAppsAsked()
	s.Router = &router.Router{
		Core: all, Asker: &router.Lookup{S: all, Engine: s.Engine, Book: s.book, Asked: asked}, Callees: callees,
		Probes: router.NewProbes(all, s.Engine, router.NewProbeCalls(all, attached, s.remotes)), Asks: router.NewUserRouters(all, s.Engine, s.users),
		Strategies: strategies,
	}

	s.Herald = alarms.NewNotifier(all, alarms.NewRules(all.Cfg.Alarms), panics)
	s.progress = dispatch.NewProgress(all, s.Engine)
	s.finisher = dispatch.NewFinisher(all, s.Engine, s.Bus, s.progress)
	s.keeper = runlog.NewWriter(all, panics)
	s.watcher = &dispatch.Watcher{Core: all, Engine: s.Engine, Teller: s.Bus, Desk: desk}
	s.Killer = &dispatch.Killer{Core: all, Engine: s.Engine, Finisher: s.finisher, Book: s.book}
	s.acceptor = dispatch.NewDispatchMarker(all, s.Engine, s.Killer)
	s.inDoubt = &dispatch.InDoubt{Core: all, Engine: s.Engine, Book: s.book, Finisher: s.finisher, Acceptor: s.acceptor}
	s.unreported = dispatch.NewUnreported(all, s.book, s.finisher, s.inDoubt)
	s.deliverer = dispatch.NewDeliverer(all, s.Engine, &dispatch.Sender{Core: all, Engine: s.Engine, Finisher: s.finisher, Killer: s.Killer, InDoubt: s.inDoubt, Acceptor: s.acceptor,
		Rerouter: &dispatch.Rerouter{Core: all, Engine: s.Engine, Finisher: s.finisher, Watcher: s.watcher, Book: s.book, Callees: callees}})
	receiver := &dispatch.Receiver{Core: all, Engine: s.Engine, Callees: callees, Finisher: s.finisher, Deliverer: s.deliverer, Doubts: s.doubts}
	s.Reader = &runlog.Reader{Core: all, Desk: desk, Calls: &runlog.Calls{Desk: desk}, Attached: attached, Book: s.book, Heard: s.progress.Elsewhere, Written: runlog.NewSource(all, panics)}
	s.inbox = &dispatch.Inbox{Core: all, Engine: s.Engine, Killer: s.Killer, Logs: s.Reader, Taker: dispatch.NewTaker(all, s.Engine, attached, receiver, s.doubts)}
	s.Starter = newStarter(s, callees, receiver)
	s.Starter.Collector.Aside = &router.ParkedLookups{Core: all, Engine: s.Engine, Asked: asked, Backoffs: map[string]*loop.Backoff{}}

	reload, lists := &lease.ReloadSet{}, catalog.NewLists(all.Life.Wakes.List)
	s.scanner = scan.NewScanner(all, s.Engine, s.fitness, s.Bus, reload)
	s.leaser = newLeaser(s, desk, lists, reload, receiver)

	s.Catalog = &catalog.Catalog{Core: all, Jobs: s.Engine.Jobs, Book: s.book, Strategies: strategies, Users: s.users, Lists: lists, Teller: s.Bus}
	s.Waiter = &dispatch.Waiter{Core: all, Engine: s.Engine, Self: &dispatch.SelfWait{Core: all, Engine: s.Engine, Book: s.book, Strategies: strategies}}
	s.speaker = &admin.Authorizer{Core: all, Attached: attached, Own: own}
	s.results = admin.NewResults(all, s.finisher, s.speaker)
	s.registrar = registry.NewRegistrar(all, memory, s.users)
	s.Attacher.Memory, s.Attacher.Admin, s.Attacher.Moved = memory, dispatch.AttachedAdmin{F: s.finisher, Logs: s.keeper}.AsAdmin(), s.speaker.WarnOfJobsAPI
	return s
}

// newStarter makes the start loop, from the store's answers back to what is due.
func newStarter(s *Node, callees *router.Resolver, receiver *dispatch.Receiver) *dispatch.Starter {
	all, reads, buffers := s.Core, &dispatch.StartReads{Core: s.Core, Engine: s.Engine}, &dispatch.StartBuffers{}
	launcher := &dispatch.Launcher{Core: all, Engine: s.Engine, Teller: s.Bus, Callees: callees, Deliverer: s.deliverer, Watcher: s.watcher}
	batches := &dispatch.StartBatcher{
		Core: all, Engine: s.Engine, Reads: reads, Buffers: buffers, Memory: s.book.Memory,
		TakesBack: &dispatch.TakesBack{Core: all, Engine: s.Engine, InDoubt: s.inDoubt, Receiver: receiver, Watcher: s.watcher},
		Calls: &dispatch.StartCalls{
			Core: all, Engine: s.Engine, Fitness: s.fitness, Doubts: s.doubts, Finisher: s.finisher, Launcher: launcher,
			Starting: loop.Backoff{Log: all.Logger, What: "starting runs"},
		},
	}
	return &dispatch.Starter{Core: all, Engine: s.Engine, Collector: &dispatch.Collector{
		Core: all, Engine: s.Engine, Router: s.Router, Memory: s.book.Memory, Reads: reads, Buffers: buffers,
	}, Batches: batches, Deliverer: s.deliverer}
}

// newLeaser makes the lease loop, and what it does beside its beats.
func newLeaser(s *Node, desk *runlog.Desk, lists *catalog.Lists, reload *lease.ReloadSet, receiver *dispatch.Receiver) *leaser {
	all, told := s.Core, &leaseNews{teller: s.Bus}
	balancer := &balancer{Core: all, reload: reload, told: told}
	return &leaser{
		Core: all, doubts: s.doubts, lists: lists,
		nodes:   &nodeNews{Core: all, engine: s.Engine, memory: s.book.Memory, desk: desk, balancer: balancer, told: told},
		server:  &serverNews{Core: all, doubts: s.doubts, lists: lists, reload: reload},
		failing: &failingNews{Core: all, fitness: s.fitness},
		tender: &tender{
			Core: all, fitness: s.fitness, balancer: balancer,
			settler: &dispatch.Recovery{Core: all, Engine: s.Engine, Finisher: s.finisher, Watcher: s.watcher, InDoubt: s.inDoubt, Reload: reload},
			orphans: &dispatch.Orphans{Core: all, Engine: s.Engine, Finisher: s.finisher, InDoubt: s.inDoubt, Receiver: receiver, Doubts: s.doubts, Sightings: dispatch.Sightings{Ended: map[int64]bool{}}},
		},
	}
}

// duties are the loops of a started scheduler. Stop ends those that plan first, then those
// that work, and those of the node's lease last.
func (s *Node) duties(signals store.Signals) (plan, work, lease []loop.Duty) {
	plan = []loop.Duty{s.scanner.ScanDuty(signals), scan.AheadDuty(s.Core, signals), (&scan.Outbox{Core: s.Core}).OwedDuty(signals), s.Starter.StartDuty(), s.Starter.Deliverer.DeliverDuty()}
	work = []loop.Duty{
		{Loop: s.finisher.FinishLoop}, {Loop: s.finisher.LockedLoop}, s.watcher.WatchDuty(signals), {Loop: s.watcher.TransitLoop}, s.inbox.InboxDuty(signals), {Loop: s.acceptor.DispatchLoop},
		{Loop: s.inDoubt.InDoubtLoop}, s.unreported.Duty(), {Loop: s.results.ResultLoop}, {Loop: s.registrar.Loop}, {Loop: s.registrar.Regs.ForgetLoop, Aside: true},
		{Loop: s.progress.Loop, Aside: true},
	}
	if s.keeper != nil {
		work = append(work, loop.Duty{Loop: s.keeper.Loop, Aside: true})
	}
	lease = []loop.Duty{{Loop: func(ctx context.Context) { s.leaser.leaseLoop(ctx, signals.Nodes) }}, s.ListDuty(), (&lockWatch{Core: s.Core}).duty()}
	if s.Cfg.Registry != nil {
		lease = append(lease, s.publisher.RegisterDuty())
	}
	lease = append(lease, retainDuties(s.Core)...)
	return plan, append(work, s.alarmDuties(signals)...), lease
}

// alarmDuties are those of the rules, none where there are none.
func (s *Node) alarmDuties(signals store.Signals) []loop.Duty {
	if len(s.Herald.Book.Rules) == 0 {
		return nil
	}
	list := []loop.Duty{s.Herald.AlarmDuty(signals)}
	if alarms.AnyWants(s.Herald.Book.Rules, alarm.Late) {
		list = append(list, alarms.LateDuty(s.Core))
	}
	return list
}

// The state of this node, put together from its books.

func (s *Node) Stats() core.Stats {
	out := core.Stats{Node: s.Cfg.Node, Incarnation: s.Leases.Incarnation, At: s.Clock.Now(), ClockOffset: s.Clock.Offset(), Calls: s.Store.(*core.Meter).Stats()}
	out.Shards, out.LeaseLeft = s.Leases.State(time.Now())
	s.Engine.State(&out)
	s.Life.Mishaps.Fill(&out.FaultStats)
	out.EventsDropped = s.Bus.Hooks.Queue.Dropped() + s.Bus.Readers.Queue.Dropped()
	if s.keeper != nil {
		out.Logs = s.keeper.Book.State()
	}
	out.Unread = s.unread.Load()
	out.ResultsRefused, out.RegistrationsRefused = s.results.Intake.Refused.Load(), s.registrar.Changes.Refused.Load()
	out.Troubles = s.Core.Troubles.Counts()
	out.Untraced = core.Untraced(s.Cfg.Tracer)
	out.Panics = s.Attacher.Panics.Counts()
	return out
}

// Troubles are those of this node, the oldest first.
func (s *Node) Troubles() []store.Trouble { return s.Core.Troubles.List() }

func (s *Node) Speaks(app, address string) string { return s.remotes.Generation(app, address) }
