package console

// The handler: what it has, and how a request goes through it.

import (
	"context"
	"html/template"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
	"github.com/xxljob/xxljob/console/internal/login"
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
	logins   *login.Authenticator
	bodies   *slots.Slots // for those that are large
	limiters map[rateKind]*slots.Pacer
	underWay *slots.Slots
	lengthy  *slots.Slots
	costly   *slots.Slots
	live     web.Readings
	counted  counted
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
	c := &console{Config: cfg, table: routes(), fields: formFieldsByOf(), origins: http.NewCrossOriginProtection(), bodies: web.NewBodies(), underWay: slots.New(pagesAtOnce), lengthy: slots.New(lengthyAtOnce), costly: slots.New(costlyOn(cfg.Store)), limiters: newLimiters(), counted: counted{patience: countsPatience}}
	if cfg.Scheduler != nil {
		c.Scheduler = &loggedScheduler{cfg.Scheduler, cfg.Logger}
	}
	if cfg.Auth.accounts {
		c.accounts, _ = cfg.Store.(xxljob.AccountStore)
	}
	c.record, _ = cfg.Store.(xxljob.ChangeRecord)
	c.logins = login.New(login.Config{Accounts: c.accounts, Record: c.record, Logger: cfg.Logger, Refused: refusalsOf(cfg.Scheduler), Doubted: c.doubtsClock})
	if cfg.OwnSetup {
		c.logins.OwnSetup()
	}
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

// refusalsOf is where the tokens are counted that the scheduler and its console refuse. One that the
// host has wrapped does not say.
func refusalsOf(s xxljob.Scheduler) *atomic.Uint64 {
	if counted, is := s.(interface{ RefusedTokens() *atomic.Uint64 }); is {
		return counted.RefusedTokens()
	}
	return new(atomic.Uint64)
}

// doubtsClock reports whether the scheduler doubts the clock at this moment.
func (c *console) doubtsClock() bool {
	return c.Scheduler != nil && slices.ContainsFunc(c.Scheduler.Troubles(), func(x xxljob.Trouble) bool { return x.Cause == xxljob.TroubleClock })
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
	told    told    // what the page says of troubles itself
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
