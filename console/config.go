package console

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/lang"
)

// Config is what a console is made with. The zero value of each field but Store, Scheduler and
// Auth is a default.
type Config struct {
	// Store is what the console reads. Required. A page that needs more of it than it answers
	// says so.
	Store xxljob.Store
	// Scheduler carries out what users do. Required unless ReadOnly; it need not be started,
	// and has to share the Store.
	Scheduler xxljob.Scheduler
	// Auth says who a request is from. Required: there is no open default.
	Auth Auth

	// Prefix is where the console is mounted, as "/console", where the host's router does not
	// strip that from the path of a request (chi's Mount, gin, echo). Empty where it does, as
	// with http.StripPrefix.
	Prefix string
	// Title is shown at the top of each page; empty means "xxljob".
	Title string
	// Label marks an environment on each page.
	Label Label
	// Location is the zone of times for those who have chosen none, and whose browser says none;
	// nil means UTC.
	Location *time.Location
	// Language is for those whose browser wants none that there is: "en", the default, "zh-CN"
	// or "zh-TW".
	Language string
	// Logger gets logins, what users change, and faults; nil means slog.Default().
	Logger *slog.Logger
	// ReadOnly draws no control that changes jobs or runs, and refuses such requests.
	ReadOnly bool
	// OwnSetup says that the host has called SetupCode before New and shows the code: the console
	// makes and logs none of its own for as long as that counts, which is a day.
	OwnSetup bool
	// Redact returns what is shown of a parameter, a result, a message or lines of a log; nil
	// shows all. It is called while a page is made, by many goroutines at once; one that panics
	// hides the text.
	Redact func(app string, field Field, text string) string
	// Links are shown on the page of a run, to the host's traces for example; nil means none.
	// It is called while the page is made, by many goroutines at once.
	Links func(run xxljob.Run) []Link

	// Viewed is told who has been answered with a log, a parameter or a result, which the record
	// of changes does not have; nil tells nobody. It is called once for each page and each file,
	// behind the answer, and not for what a page asks for by itself, to refresh or to follow a
	// log. It is called by many goroutines at once, each of which keeps its connection until it
	// returns; its context has the values of the request's and does not end with it. A panic goes
	// to the Logger.
	Viewed func(ctx context.Context, v View)

	// TrustedOrigins are origins such as "https://example.com" from which browsers may send
	// requests that change something, besides the console's own.
	TrustedOrigins []string
	// TrustedProxies are the networks of proxies whose X-Forwarded-For is believed, each as the
	// addresses from which they connect; a single address is a prefix of all of its bits. Where
	// one of them is connected, a request comes from the last address in that header that is not
	// one of theirs: failed logins are counted by it, and it is the client of sessions, of the
	// record of changes and of the log. Empty believes nobody, so that a request comes from who is
	// connected. Forwarded and X-Real-Ip are not read.
	TrustedProxies []netip.Prefix
	// FrameAncestors are origins that may show the console in a frame; empty means none.
	FrameAncestors []string
	// SecureCookies sets the Secure attribute of cookies always. Otherwise it is set when the
	// request came by TLS, or says so by X-Forwarded-Proto, whoever has sent it: that only ever
	// adds the attribute, to the cookies of the browser that it comes from.
	SecureCookies bool
}

// Field is a kind of text that Config.Redact is asked about.
type Field string

// The kinds of texts.
const (
	FieldParam  Field = "param"  // of a job or a run
	FieldResult Field = "result" // what a handler has returned, or its error
	FieldLog    Field = "log"    // lines of a run's log
)

// Label marks an environment: a short text, as "PROD", and its color.
type Label struct {
	// Text has at most 20 bytes; empty means no label.
	Text string
	// Color is "gray", the default, "red", "amber", "green", "blue" or "violet".
	Color string
}

// Link is a link to a page of somebody else's.
type Link struct {
	// Text is what it says, URL an absolute one of http or https.
	Text, URL string
}

// colors are those that a Label may have.
var colors = []string{"gray", "red", "amber", "green", "blue", "violet"}

// prefix is a path that begins with a slash and does not end in one.
var prefix = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// withDefaults is the config with what zero values stand for, or all that is wrong with it.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("console: "+format, args...))
		}
	}
	if c.Title == "" {
		c.Title = "xxljob"
	}
	if c.Label.Color == "" {
		c.Label.Color = colors[0]
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Language == "" {
		c.Language = lang.Tags()[0]
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Prefix = strings.TrimSuffix(c.Prefix, "/")
	_, keeps := c.Store.(xxljob.AccountStore)
	fault(c.Store == nil, "Store is missing")
	fault(c.Scheduler == nil && !c.ReadOnly, "Scheduler is missing; without one the console has to be ReadOnly")
	fault(c.Auth.who == nil, "Auth is missing; see Accounts, Loopback, Basic and Func")
	fault(c.Auth.accounts && c.Store != nil && !keeps, "Accounts: the store keeps no users (xxljob.AccountStore); see Func and Basic")
	fault(c.Prefix != "" && !prefix.MatchString(c.Prefix), "Prefix %q: want a path such as /console", c.Prefix)
	fault(len(c.Title) > 80, "Title: %d bytes, at most 80", len(c.Title))
	fault(len(c.Label.Text) > 20, "Label.Text: %d bytes, at most 20", len(c.Label.Text))
	fault(!slices.Contains(colors, c.Label.Color), "Label.Color %q: want one of %s", c.Label.Color, strings.Join(colors, ", "))
	fault(!slices.Contains(lang.Tags(), c.Language), "Language %q: want one of %s", c.Language, strings.Join(lang.Tags(), ", "))
	for _, p := range c.TrustedProxies {
		fault(!p.IsValid() || p.Bits() == 0 || p.Addr().Is4In6(), "TrustedProxies %v: want the network of a proxy such as 10.0.0.0/8 or 2001:db8::/32, IPv4 as such, and not all there are", p)
	}
	for _, list := range []struct {
		name    string
		origins []string
	}{{"TrustedOrigins", c.TrustedOrigins}, {"FrameAncestors", c.FrameAncestors}} {
		for _, o := range list.origins {
			fault(!isOrigin(o), "%s %q: want an origin such as https://example.com", list.name, o)
		}
	}
	return c, errors.Join(errs...)
}

// isPage reports whether a text is the address of a page of the web.
func isPage(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isOrigin reports whether a text is a scheme and a host, and nothing that could end a directive
// of a policy.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Scheme+"://"+u.Host == text && !strings.ContainsAny(text, " ;,'\"*")
}
