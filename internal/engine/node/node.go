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
	*runlog.Reader     // Log, LogTail

	own        *executor.Executor
	panics     *guard.Log // of code of the user's
	users      *registry.UserCalls
	queue      *queue.Queue
	fitness    *lease.Fitness
	book       *registry.Addresses
	advertiser *registry.Advertiser
	remotes    *registry.Remotes
	serving    *registry.Serving
	router     *router.Router
	lines      *runlog.Writer // nil where Config.Logs names nothing
	alarms     *alarms.Notifier

	dispatch  *dispatch.Dispatcher
	scanner   *scan.Scanner
	heartbeat *heartbeat

	registrar  *registry.Registrar
	results    *admin.Results
	places     *placesWatch
	authorizer *admin.Authorizer
	unread     atomic.Uint64 // requests and results that were not understood
	refused    atomic.Uint64 // requests whose token was refused
}

// New checks the settings and makes a node that is not started.
func New(st store.Store, cfg core.Config) (*Node, error) {
	if st == nil {
		return nil, errors.New("xxljob: New: the store is nil")
	}
	unnamed := cfg.App == ""
	cfg = cfg.WithDefaults()
	own, err := cfg.OwnExecutor()
	var nameless error
	if unnamed {
		nameless = cfg.CheckUnnamed(st)
	}
	if err := errors.Join(nameless, cfg.Validate(), cfg.CheckLogs(st), err); err != nil {
		return nil, err
	}
	log := cfg.Logger.With("node", cfg.Node)
	if unnamed {
		log.Warn("xxljob: Config.App is empty, so the app is the program's file name", "app", cfg.App)
	}
	if apps := cfg.ShortTokens(); len(apps) > 0 {
		log.Warn("xxljob: Config.HTTP.Tokens has tokens below 16 bytes, which can be guessed; the next release refuses them unless Config.HTTP.AllowShortTokens is set", "apps", apps)
	}
	all := core.New(cfg, st, log)
	sayRetention(st, cfg.RunRetention)
	s := assemble(all, cfg.Node+"-"+core.RandomText(10), own)
	return s, s.Attach(own)
}

// AdminHandler is what executors elsewhere call.
func (s *Node) AdminHandler() (http.Handler, error) {
	authorize, err := s.Cfg.Authorize()
	if err != nil {
		return nil, err
	}
	return wire.NewAdminHandler(admin.New(s.Core, s.registrar, s.results, s.authorizer, s.Catalog), wire.HandlerConfig{Authorize: admin.WithAppTokens(s.Core, authorize), Logger: s.Logger, Unread: &s.unread, Refused: &s.refused})
}

// RefusedTokens is where refused tokens are counted, for a console beside the scheduler too.
func (s *Node) RefusedTokens() *atomic.Uint64 { return &s.refused }

// assemble makes the parts, the lower rooms first: each is given those that it needs. What is told to a
// part that was made before is set behind it.
func assemble(all *core.Core, incarnation string, own *executor.Executor) *Node {
	panics := guard.NewLog(func() *slog.Logger { return all.Logger })
	s := &Node{Core: all, own: own, panics: panics}
	wakes := all.Life.Wakes
	attached, memory := &registry.AttachedSet{}, registry.NewMemory(all.Cfg.Cluster.Dead, wakes.Served)
	s.Attacher = registry.NewAttacher(all, attached, own, memory, panics)
	all.Cfg.Tracer = core.GuardTracer(all.Cfg.Tracer, panics)
	all.Leases = lease.New(incarnation, core.TimesOf(&all.Cfg.Cluster), s.Attachments)
	s.fitness = lease.NewFitness(all.Cfg.Cluster.LeaseTTL, wakes.Lease)

	s.queue = queue.New(all, panics)
	s.Bus = events.NewBus(all, panics, s.queue.News, s.queue.Jobs.Job)
	all.Troubles.Tell = func(kind core.EventKind, t store.Trouble) {
		s.Happened(core.Event{Kind: kind, At: time.Now().UTC(), Trouble: &t})
		wakes.Alarms.Poke()
	}
	s.alarms = alarms.NewNotifier(all, alarms.NewRules(all.Cfg.Alarms), panics)

	s.places = &placesWatch{Core: all, attached: attached}
	s.users = registry.NewUserCalls(&all.Cfg, panics)
	s.remotes = registry.NewRemotes(&all.Cfg)
	s.advertiser = registry.NewAdvertiser(all, s.Attacher, s.users, memory)
	s.book = registry.NewAddresses(all, attached, s.remotes, s.users, s.advertiser.RegisterAttached, memory)
	s.serving = registry.NewServing(all, s.book, own,
		func(app string) { s.queue.Due.AdmitAll(queue.ForExecutor(app)) },
		func(app string) bool { return s.queue.Due.Waits(queue.ForExecutor(app)) },
		func(app string) int { return s.queue.LateByExecutor(app) })
	s.registrar = registry.NewRegistrar(all, memory, s.users)

	strategies := router.NewStrategies(&all.Cfg, store.LocalAddress(incarnation))
	s.router = router.New(all, s.queue, s.book, s.serving, attached, s.remotes, s.users, strategies)
	s.lines = runlog.NewWriter(all, panics)
	s.Reader = runlog.NewReader(all, attached, s.book, panics)
	s.router.Asks.Ask = s.Reader.AskNode

	reload, lists := &lease.ReloadSet{}, catalog.NewLists(wakes.List)
	s.scanner = scan.NewScanner(all, s.queue, s.serving, s.fitness, s.Bus, reload)
	s.dispatch = dispatch.New(dispatch.Deps{
		Core: all, Queue: s.queue, Bus: s.Bus, Book: s.book, Router: s.router, Logs: s.Reader, Lines: s.lines, Fitness: s.fitness, Reload: reload,
	})
	s.Reader.Heard = s.dispatch.HeardProgress
	s.Catalog = catalog.New(all, s.queue.Jobs, s.book, strategies, s.users, lists, s.Bus)
	s.authorizer = admin.NewAuthorizer(all, attached, own)
	s.results = admin.NewResults(all, s.dispatch, s.authorizer)
	s.Attacher.ReportTo(s.dispatch.AttachedAdmin(), s.authorizer.WarnOfJobsAPI)

	s.heartbeat = &heartbeat{
		Core: all, queue: s.queue, dispatch: s.dispatch, memory: memory, desk: s.Reader.Desk, routers: strategies.Own, lists: lists, fitness: s.fitness, reload: reload,
		told: leaseNews{bus: s.Bus}, comes: s.comes, refused: map[string]time.Time{},
		sayingZones:   loop.Backoff{Log: all.Logger, What: "telling the store which time zones this node lacks"},
		sayingProcess: loop.Backoff{Log: all.Logger, What: "telling the store of which release this node is"},
	}
	return s
}

// duties are the loops of a started scheduler. Stop ends those that plan first, then those
// that work, and those of the node's lease last.
func (s *Node) duties(signals store.Signals) (plan, work, lease []loop.Duty) {
	plan = []loop.Duty{s.scanner.ScanDuty(signals), s.Watched(scan.AheadDuty(s.Core, signals)), scan.RedateDuty(s.Core), s.Watched((&scan.Payer{Core: s.Core, Bus: s.Bus}).OwedDuty(signals))}
	start, work := s.dispatch.Duties(signals)
	plan = append(plan, start...)
	work = append(work, loop.Duty{Loop: s.results.ResultLoop}, loop.Duty{Loop: s.registrar.Loop}, loop.Duty{Loop: s.registrar.Regs.ForgetLoop, Aside: true})
	if s.lines != nil {
		work = append(work, loop.Duty{Loop: s.lines.Loop, Aside: true})
	}
	lease = []loop.Duty{{Loop: func(ctx context.Context) { s.heartbeat.loop(ctx, signals.Nodes) }}, s.ListDuty(), s.TakeBackDuty(), s.serving.Duty(), (&troubleWatch{Core: s.Core, router: s.router}).duty(), (&waitWatch{Core: s.Core, queue: s.queue, unfit: s.unfit}).duty(), clockDuty(s.Core), s.places.duty()}
	if s.Cfg.Registry != nil {
		lease = append(lease, s.advertiser.RegisterDuty())
	}
	lease = append(append(lease, retainDuties(s.Core)...), s.alarms.UntoldDuty(), s.FollowDuty(), s.OtherLinesDuty(), s.LeftOutDuty(), s.linksDuty())
	lease = append(lease, s.serving.UnservedDuty()...)
	return plan, append(work, s.alarmDuties(signals)...), lease
}

// comes is what a node does before it joins: its rules count from now, and it tells of what nobody of
// its apps could be told.
func (s *Node) comes(ctx context.Context) error {
	if err := s.alarms.Keep(ctx); err != nil {
		return err
	}
	s.serving.LookBack(ctx)
	s.alarms.Came()
	return nil
}

// alarmDuties are those of the rules. Where there are none troubles are passed on to those of others.
func (s *Node) alarmDuties(signals store.Signals) []loop.Duty {
	if len(s.alarms.Rules) == 0 {
		if !s.alarms.Notes() {
			return nil
		}
		return []loop.Duty{s.alarms.AlarmDuty(store.Signals{})}
	}
	list := []loop.Duty{s.alarms.AlarmDuty(signals), s.alarms.KeepDuty()}
	if alarms.AnyWants(s.alarms.Rules, alarm.Late) {
		list = append(list, s.alarms.LateDuty())
	}
	return list
}

// The state of this node, put together from its books.

func (s *Node) Stats() core.Stats {
	out := core.Stats{Node: s.Cfg.Node, Incarnation: s.Leases.Incarnation, At: s.Clock.Now(), ClockOffset: s.Clock.Offset(), Calls: s.Store.(*core.Meter).Stats()}
	out.Shards, out.LeaseLeft = s.Leases.State(time.Now())
	s.queue.State(&out)
	s.Life.FaultCounts.Fill(&out.FaultStats)
	out.EventsDropped = s.Bus.Dropped()
	if s.lines != nil {
		out.Logs = s.lines.Book.State()
	}
	out.Unread, out.TokensRefused = s.unread.Load(), s.refused.Load()
	out.ResultsRefused, out.RegistrationsRefused = s.results.Intake.Refused.Load(), s.registrar.Changes.Refused.Load()
	out.PlacesHeld = s.places.held()
	out.Troubles = s.Core.Troubles.Counts()
	out.Untraced = core.Untraced(s.Cfg.Tracer)
	out.Panics = s.panics.Counts()
	return out
}

// Troubles are those of this node, the oldest first.
func (s *Node) Troubles() []store.Trouble { return s.Core.Troubles.List() }

func (s *Node) Kill(ctx context.Context, runID int64) error { return s.dispatch.Kill(ctx, runID) }

func (s *Node) Wait(ctx context.Context, runID int64) (store.Run, error) {
	return s.dispatch.Wait(ctx, runID)
}

func (s *Node) Speaks(app, address string) string { return s.remotes.Generation(app, address) }
