package xxljob

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/executor"
	"github.com/xxljob/xxljob/internal/guard"
	"github.com/xxljob/xxljob/internal/loop"
	"github.com/xxljob/xxljob/store"
	"github.com/xxljob/xxljob/wire"
)

// The parts of a scheduler, and how they are put together. The parts themselves know only
// those that they are made of.

// scheduler is the engine behind Scheduler: the list of its parts. Those whose methods are
// the interface's are embedded.
type scheduler struct {
	*shared
	*attacher // Attach, Handle
	*definer  // the verbs of definitions
	*teller   // Events
	*killer   // Kill
	*logs     // Log, LogTail
	*waiter   // Wait

	own        *executor.Executor
	users      *userCalls
	doubts     *doubts
	engine     *engine
	fitness    *fitness
	book       *addressBook
	publisher  *publisher
	remotes    *remotes
	router     *router
	progress   *progress
	finisher   *finisher
	keeper     *logKeeper // nil where Config.Logs names nothing
	watcher    *watcher
	acceptor   *acceptor
	inDoubt    *inDoubt
	unreported *unreported
	herald     *herald

	deliverer *deliverer
	inbox     *inbox
	starter   *starter
	scanner   *scanner
	leaser    *leaser

	registrar *registrar
	results   *adminResults
	speaker   *speaker
}

// newNode checks the settings and makes a node that is not started.
func newNode(st store.Store, cfg Config) (*scheduler, error) {
	if st == nil {
		return nil, errors.New("xxljob: New: the store is nil")
	}
	cfg = cfg.withDefaults()
	own, err := cfg.ownExecutor()
	if err := errors.Join(cfg.validate(), cfg.checkLogs(st), err); err != nil {
		return nil, err
	}
	all := &shared{
		cfg: cfg, store: &storeMeter{Store: st}, log: cfg.Logger.With("node", cfg.Node), clock: &clock{}, life: newLife(),
	}
	sayRetention(st, cfg.RunRetention)
	sayAlarms(st, newAlarmRules(cfg.Alarms))
	s := assemble(all, cfg.Node+"-"+randomText(10), own)
	return s, s.Attach(own)
}

// AdminHandler is what executors elsewhere call.
func (s *scheduler) AdminHandler() (http.Handler, error) {
	authorize, err := s.cfg.authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(&adminSide{s.shared, s.registrar, s.results, s.speaker, s.definer, loop.NewRateLimit()}, wire.HandlerConfig{Authorize: authorize, Logger: s.log})
}

// assemble makes the parts, each with those that it needs, from the lower floors upwards.
func assemble(all *shared, incarnation string, own *executor.Executor) *scheduler {
	s := &scheduler{shared: all, own: own}
	panics := guard.NewLog(func() *slog.Logger { return all.log })
	attached, desk := &attachedSet{}, newLogDesk()
	s.attacher = &attacher{shared: all, attached: attached, own: own, panics: panics}
	all.cfg.Tracer = guardTracer(all.cfg.Tracer, panics)
	all.leases = newLeases(incarnation, timesOf(&all.cfg.Cluster), s.attachments)

	s.users = newUserCalls(&all.cfg, panics)
	s.doubts = newDoubts(all.life.wakes.lease)
	s.engine = newEngine(all, panics)
	s.engine.jobs.onChange(s.engine.letPassOf)
	s.teller = newTeller(all, panics, s.engine.news, s.engine.jobs.job)
	s.fitness = newFitness(all.cfg.Cluster.LeaseTTL, all.life.wakes.lease)
	s.remotes = newRemotes(&all.cfg)
	memory := newAddressMemory(all.cfg.Cluster.Dead)
	s.publisher = &publisher{all, s.attacher, s.users, memory}
	s.book = &addressBook{all, attached, s.remotes, s.users, s.publisher.registerAttached, memory}
	callees := &callees{incarnation, attached, s.remotes}
	strategies := newStrategies(&all.cfg, store.LocalAddress(incarnation))
	asked := newAppsAsked()
	s.router = &router{
		shared: all, asker: &appAsker{all, s.engine, s.book, asked}, callees: callees,
		probes: newProbes(all, s.engine, newProbeCalls(all, attached, s.remotes)), asks: newUserRouters(all, s.engine, s.users, panics),
		strategies: strategies,
	}

	s.herald = newHerald(all, newAlarmRules(all.cfg.Alarms), panics)
	s.progress = newProgress(all, s.engine)
	s.finisher = newFinisher(all, s.engine, s.teller, s.progress)
	s.keeper = newLogKeeper(all, panics)
	s.watcher = &watcher{shared: all, engine: s.engine, teller: s.teller, desk: desk}
	s.killer = &killer{all, s.engine, s.finisher, s.book}
	s.acceptor = newAcceptor(all, s.engine, s.killer)
	s.inDoubt = &inDoubt{shared: all, engine: s.engine, book: s.book, finisher: s.finisher, acceptor: s.acceptor}
	s.unreported = newUnreported(all, s.book, s.finisher, s.inDoubt)
	s.deliverer = newDeliverer(all, s.engine, &sender{shared: all, engine: s.engine, finisher: s.finisher, killer: s.killer, inDoubt: s.inDoubt, acceptor: s.acceptor,
		rerouter: &rerouter{shared: all, engine: s.engine, finisher: s.finisher, watcher: s.watcher, book: s.book, callees: callees}})
	receiver := &receiver{all, s.engine, callees, s.finisher, s.deliverer, s.doubts}
	s.logs = &logs{all, desk, &logCalls{desk}, attached, s.book, s.progress.elsewhere, newLogSource(all, panics)}
	s.inbox = &inbox{all, s.engine, s.killer, s.logs, newTaker(all, s.engine, attached, receiver, s.doubts)}
	s.starter = newStarter(s, callees, receiver)
	s.starter.collector.aside = &unrouted{all, s.engine, asked, map[string]*loop.Backoff{}}

	reload, lists := &reloadSet{}, newOwnLists(all.life.wakes.list)
	s.scanner = newScanner(all, s.engine, s.fitness, s.teller, reload)
	s.leaser = newLeaser(s, desk, lists, reload, receiver)

	s.definer = &definer{all, s.engine.jobs, s.book, strategies, s.users, lists, s.teller}
	s.waiter = &waiter{all, s.engine, &selfWait{all, s.engine, s.book, strategies}}
	s.speaker = &speaker{shared: all, attached: attached, own: own}
	s.results = newAdminResults(all, s.finisher, s.speaker)
	s.registrar = newRegistrar(all, memory, s.users)
	s.attacher.memory, s.attacher.admin, s.attacher.moved = memory, attachedAdmin{s.finisher, s.keeper}.asAdmin(), s.speaker.warnOfJobsAPI
	return s
}

// newStarter makes the start loop, from the store's answers back to what is due.
func newStarter(s *scheduler, callees *callees, receiver *receiver) *starter {
	all, reads, buffers := s.shared, &startReads{s.shared, s.engine}, &startBuffers{}
	launcher := &launcher{all, s.engine, s.teller, callees, s.deliverer, s.watcher}
	batches := &startBatcher{
		shared: all, engine: s.engine, reads: reads, buffers: buffers, memory: s.book.memory,
		takesBack: &takesBack{all, s.engine, s.inDoubt, receiver, s.watcher},
		calls: &startCalls{
			shared: all, engine: s.engine, fitness: s.fitness, doubts: s.doubts, finisher: s.finisher, launcher: launcher,
			starting: loop.Backoff{Log: all.log, What: "starting runs"},
		},
	}
	return &starter{shared: all, engine: s.engine, collector: &collector{
		shared: all, engine: s.engine, router: s.router, memory: s.book.memory, reads: reads, buffers: buffers,
	}, batches: batches, deliverer: s.deliverer}
}

// newLeaser makes the lease loop, and what it does beside its beats.
func newLeaser(s *scheduler, desk *logDesk, lists *ownLists, reload *reloadSet, receiver *receiver) *leaser {
	all, told := s.shared, &leaseNews{teller: s.teller}
	balancer := &balancer{shared: all, reload: reload, told: told}
	return &leaser{
		shared: all, doubts: s.doubts, lists: lists,
		nodes:   &nodeNews{shared: all, engine: s.engine, memory: s.book.memory, desk: desk, balancer: balancer, told: told},
		server:  &serverNews{shared: all, doubts: s.doubts, lists: lists, reload: reload},
		failing: &failingNews{shared: all, fitness: s.fitness},
		tender: &tender{
			shared: all, fitness: s.fitness, balancer: balancer,
			settler: &settler{all, s.engine, s.finisher, s.watcher, s.inDoubt, reload},
			orphans: &orphans{shared: all, engine: s.engine, finisher: s.finisher, inDoubt: s.inDoubt, receiver: receiver, doubts: s.doubts, sightings: sightings{ended: map[int64]bool{}}},
		},
	}
}

// timesOf are the durations that a node's leases go by.
func timesOf(c *ClusterConfig) leaseTimes {
	return leaseTimes{window: c.LeaseTTL - c.LeaseTTL/5, ttl: c.LeaseTTL, lostAfter: c.LostAfter, maxHold: c.LeaseMaxHold}
}

// duties are the loops of a started scheduler. Stop ends those that plan first, then those
// that work, and those of the node's lease last.
func (s *scheduler) duties(signals store.Signals) (plan, work, lease []loop.Duty) {
	plan = []loop.Duty{s.scanner.scanDuty(signals), aheadDuty(s.shared, signals), (&payer{s.shared}).owedDuty(signals), s.starter.startDuty(), s.starter.deliverer.deliverDuty()}
	work = []loop.Duty{
		{Loop: s.finisher.finishLoop}, {Loop: s.finisher.lockedLoop}, s.watcher.watchDuty(signals), {Loop: s.watcher.transitLoop}, s.inbox.inboxDuty(signals), {Loop: s.acceptor.dispatchLoop},
		{Loop: s.inDoubt.inDoubtLoop}, s.unreported.duty(), {Loop: s.results.resultLoop}, {Loop: s.registrar.loop}, {Loop: s.registrar.regs.forgetLoop, Aside: true},
		{Loop: s.progress.loop, Aside: true},
	}
	if s.keeper != nil {
		work = append(work, loop.Duty{Loop: s.keeper.loop, Aside: true})
	}
	lease = []loop.Duty{{Loop: func(ctx context.Context) { s.leaser.leaseLoop(ctx, signals.Nodes) }}, s.listDuty()}
	if s.cfg.Registry != nil {
		lease = append(lease, s.publisher.registerDuty())
	}
	lease = append(lease, retainDuties(s.shared)...)
	return plan, append(work, s.alarmDuties(signals)...), lease
}

// alarmDuties are those of the rules, none where there are none.
func (s *scheduler) alarmDuties(signals store.Signals) []loop.Duty {
	if len(s.herald.book.rules) == 0 {
		return nil
	}
	list := []loop.Duty{s.herald.alarmDuty(signals)}
	if anyWants(s.herald.book.rules, alarm.Late) {
		list = append(list, lateDuty(s.shared))
	}
	return list
}

// The state of this node, put together from its books.

func (s *scheduler) Stats() Stats {
	out := Stats{Node: s.cfg.Node, Incarnation: s.leases.incarnation, At: s.clock.now(), ClockOffset: s.clock.offset(), Calls: s.store.(*storeMeter).stats()}
	out.Shards, out.LeaseLeft = s.leases.state(time.Now())
	s.engine.state(&out)
	s.life.mishaps.fill(&out.FaultStats)
	out.EventsDropped = s.teller.hooks.queue.dropped() + s.teller.readers.queue.dropped()
	if s.keeper != nil {
		out.Logs = s.keeper.book.state()
	}
	out.ResultsRefused, out.RegistrationsRefused = s.results.intake.Refused.Load(), s.registrar.changes.Refused.Load()
	out.Untraced = untraced(s.cfg.Tracer)
	out.Panics = s.attacher.panics.Counts()
	return out
}

func (s *scheduler) Speaks(app, address string) string { return s.remotes.generation(app, address) }
