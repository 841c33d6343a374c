package console

// The handler: what it has, and how a request goes through it.

import (
	"context"
	"html/template"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/internal/slots"
	"github.com/xxljob/xxljob/store"
)

// console is the handler. What it has is made by New and never changed, but for what counts.
type console struct {
	Config
	Scheduler *loggedScheduler // in place of that of Config, which knows no users; nil where there is none

	accounts  xxljob.AccountStore  // nil but with Accounts
	record    xxljob.ChangeRecord  // nil where the store has none
	mutes     store.MuteKeeper     // nil where the store keeps none
	appTokens store.AppTokenKeeper // nil where the store keeps none
	printed
	table    []route
	fields   map[string]*formField // of the form of a job: see formFieldsByOf
	origins  *http.CrossOriginProtection
	mount    web.Mount
	policy   string // Content-Security-Policy
	looks    look.Options
	hasher   *web.Hasher
	bodies   *slots.Slots    // for those that are large
	refused  *slots.Refusals // programs whose token is nobody's
	failures web.LoginFailures
	alone    atomic.Uint64 // by which counter of a name the next try is counted
	limiters map[rateKind]*slots.Pacer
	lookups  *slots.Slots
	underWay *slots.Slots
	lengthy  *slots.Slots
	costly   *slots.Slots
	setupper setupper
	live     web.Readings
	counted  counted
	known    known        // whose sessions the store has confirmed
	answered atomic.Int64 // when a page was made of what the store has answered, in Unix milliseconds; 0: not yet
}

// printed is what is the same whatever the config: words, pages, and the files that these refer to.
type printed struct {
	langs  map[string]*lang.Language
	pages  map[string]*template.Template // by language
	assets web.Assets
}

// readPrinted reads all of it.
func readPrinted() (p printed, err error) {
	if p.assets, err = web.LoadAssets(files, "asset/*.css", "asset/*.js", "asset/*.svg", "asset/vendor/*.js"); err != nil {
		return p, err
	}
	if p.langs, err = lang.Load(words()); err != nil {
		return p, err
	}
	p.pages, err = parsePages(p.langs)
	return p, err
}

// New makes a console. All faults of the config come as one error.
func New(cfg Config) (http.Handler, error) { return newConsole(cfg, readPrinted) }

// newConsole is New with what has been read for it.
func newConsole(cfg Config, read func() (printed, error)) (http.Handler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &console{Config: cfg, table: routes(), fields: formFieldsByOf(), origins: http.NewCrossOriginProtection(), hasher: web.NewHasher(), bodies: web.NewBodies(), refused: slots.NewRefusals(refusalsOf(cfg.Scheduler)), lookups: slots.New(lookupsAtOnce), underWay: slots.New(pagesAtOnce), lengthy: slots.New(lengthyAtOnce), costly: slots.New(costlyAtOnce), limiters: newLimiters(), setupper: setupper{turn: make(chan struct{}, 1)}}
	if cfg.OwnSetup {
		c.setupper.own()
	}
	if cfg.Scheduler != nil {
		c.Scheduler = &loggedScheduler{cfg.Scheduler, cfg.Logger}
	}
	if cfg.Auth.accounts {
		c.accounts, _ = cfg.Store.(xxljob.AccountStore)
	}
	c.record, _ = cfg.Store.(xxljob.ChangeRecord)
	c.mutes, _ = cfg.Store.(store.MuteKeeper)
	c.appTokens, _ = cfg.Store.(store.AppTokenKeeper)
	for _, origin := range cfg.TrustedOrigins {
		if err := c.origins.AddTrustedOrigin(origin); err != nil {
			return nil, err // withDefaults has checked it
		}
	}
	c.mount = web.Mount{Prefix: cfg.Prefix, SecureCookies: cfg.SecureCookies, TrustedProxies: cfg.TrustedProxies, HasPage: c.hasPage}
	c.policy = web.PolicyFor(cfg.FrameAncestors)
	if c.printed, err = read(); err != nil {
		return nil, err
	}
	c.looks = look.Options{Languages: c.langs, Columns: choosableNames(), Language: c.Language, Zone: c.Location}
	return c, nil
}

// request is one request on its way to its answer.
type request struct {
	*console
	*web.Exchange
	ctx context.Context

	route   *route            // nil where there is none
	values  map[string]string // what is variable in the path
	user    *User             // nil for nobody
	was     *User             // whose session it was, where the store does not answer; it has no rights
	job     xxljob.Job        // of the route, if it is about one
	run     xxljob.Run
	secrets map[int64]bool // what learnSecrets has found out
	look    look.Look
	counts  *counts // behind the presets of the page; nil where they are not known

	hashes slots.Holder // for whom the hashes of a login count
}

// ServeHTTP answers a request.
func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{console: c, Exchange: c.mount.Exchange(w, r)}
	q.Secure(c.policy)
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			c.Logger.Error("console: a page has panicked", "request", q.ID, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			q.fail(&web.Problem{Status: http.StatusInternalServerError, Key: "problem.panic"})
		}
	}()
	defer q.Leave()
	below, ours := c.mount.Below(r)
	q.Path, q.ctx, q.look = below, r.Context(), c.looks.Of(q.Exchange)
	if to := c.mount.Slashed(r); to != "" {
		q.RedirectOut(to)
		return
	}
	if !ours {
		q.fail(errNotThere)
		return
	}
	if err := q.serve(); err != nil {
		q.fail(err)
	}
}

// hasPage reports whether there is a page at a path below the mount.
func (c *console) hasPage(path string) bool {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		rt, values, _ := match(c.table, method, path)
		if _, err := strconv.ParseInt(values["id"], 10, 64); rt != nil && (err == nil || values["id"] == "") {
			return true
		}
	}
	return false
}

// serve finds the route, checks whether it may be asked, and asks it.
func (q *request) serve() error {
	rt, values, known := match(q.table, q.R.Method, q.Path)
	switch {
	case rt == nil && known:
		return errBadMethod
	case rt == nil, rt.only && q.accounts == nil:
		return errNotThere
	}
	q.route, q.values = rt, values
	ctx, cancel := context.WithTimeout(q.R.Context(), rt.timeout())
	defer cancel()
	q.ctx = store.WithClient(ctx, q.Client.Text, q.ID)
	q.R = q.R.WithContext(q.ctx)
	if err := q.origins.Check(q.R); err != nil {
		return errForeign
	}
	err := q.admit(rt) // before the body is read: users have room of their own for theirs
	if rt.changes() && (err == nil || rt.keeps && q.isKept(asProblem(err))) {
		if fault := q.readForm(rt); fault != nil {
			return fault
		}
	}
	if err != nil {
		return err
	}
	err = q.serveRoute(rt)
	if err == nil && rt.changes() && !rt.reads && !rt.own && q.user != nil {
		q.counted.changed()
	}
	if err == nil && rt.needs > anybody && rt.pattern != "troubles" { // which asks the scheduler alone
		q.answered.Store(time.Now().UnixMilli())
	}
	return err
}

// readForm reads the form of a request that changes something.
func (q *request) readForm(rt *route) error {
	of := web.FormBounds{Bytes: mostBody, Fields: rt.fields(), Who: q.holder()}
	switch {
	case rt.takesKept():
		of.Bytes += mostBeside
	case q.user == nil:
		of.Bytes = web.MostOpen
	}
	size, err := q.ReadForm(q.bodies, of)
	if err == nil && rt.keeps && size > mostBody && q.Field("show") != showResumed {
		return web.ErrTooLarge // or the login could not keep it
	}
	return err
}

// admit says who asks, reads what is asked about, and decides whether it may be.
func (q *request) admit(rt *route) error {
	if rt.needs == open {
		return q.limitRate(rt.rate)
	}
	if err := q.identify(); err != nil {
		return err
	}
	switch {
	case rt.needs == anybody:
		return nil
	case rt.needs == newcomer:
		return q.wantsNewcomer()
	case q.user == nil:
		if err := q.wantsUsers(); err != nil {
			return err
		}
		return errNobody
	}
	if q.mustChangeIt() && !(rt.own && rt.needs == somebody) && rt.pattern != "account" {
		return errMustChange
	}
	return q.permit(rt)
}

// permit reads what is asked about, and decides whether the user may ask.
// A place is taken before, since what is read may be large.
func (q *request) permit(rt *route) error {
	places := q.underWay
	if rt.long {
		places = q.lengthy
	}
	if err := q.hold(places); err != nil {
		return err
	}
	do, app := rt.needs.action(), ""
	if rt.of != nothing {
		var err error
		if app, err = q.readObject(rt.of); err != nil {
			return err
		}
		if !allowed(q.user, see, app) {
			return errNotThere // as if it were not there
		}
	}
	switch {
	case do != 0 && !allowed(q.user, do, app):
		return forbidden(do)
	case rt.person && q.user.token != "":
		return errNoLogin
	case (rt.changes() && !rt.own && !rt.reads || rt.control) && q.ReadOnly:
		return errReadOnly
	}
	return q.limitRate(rt.rate)
}

// readObject reads the job or the run of the path, and returns its app.
func (q *request) readObject(of object) (app string, err error) {
	id, err := strconv.ParseInt(q.values["id"], 10, 64)
	if err != nil || id <= 0 || strconv.FormatInt(id, 10) != q.values["id"] {
		return "", errNotThere
	}
	if of == aJob {
		q.job, err = q.Store.Job(q.ctx, id)
		q.look.InZoneOf(q.job.Schedule.Zone)
		return q.job.App, err
	}
	if q.run, err = q.Store.Run(q.ctx, id); err == nil {
		one := []xxljob.Run{q.run}
		q.markSecret(q.ctx, one)
		q.run = one[0]
	}
	return q.run.App, err
}

// fail answers with what went wrong. What is the user's own fault is not logged.
func (q *request) fail(err error) {
	p := asProblem(err)
	if p.Status >= http.StatusInternalServerError && p.Cause != nil {
		q.Logger.Warn("console: a request has failed", "request", q.ID, "path", q.R.URL.Path, "error", p.Cause)
	}
	if q.Wrote {
		return // the answer has begun; it ends here
	}
	if p == errMustChange && q.R.Method == http.MethodGet && !q.IsPart() && q.Redirect("account") == nil {
		return
	}
	if p == errNobody && q.sendsToLogin() || p == errSetup && q.R.Method == http.MethodGet && !q.IsPart() && q.Redirect("setup") == nil {
		return
	}
	h := q.W.Header()
	if p == errNobody && q.Auth.ask != "" {
		h.Set("WWW-Authenticate", q.Auth.ask)
	}
	if p.After > 0 {
		h.Set("Retry-After", strconv.Itoa(web.Seconds(p.After)))
	}
	if !q.keepForm(p) {
		q.problemPage(p)
	}
}

// within is the context of the request with a deadline that is sooner.
func (q *request) within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(q.ctx, d)
}
