package console_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// attack is what somebody might try. Its check tries it and says in which ways it has succeeded.
// Twins are consoles, and hosts of one, that lack what stops it: there it has to succeed, or the
// check would find nothing anywhere. All of it is in a bubble in which time stands still while
// something is done, but for what asks executors elsewhere.
type attack struct {
	name  string
	check func(*site) found
	twins map[string]func(*testing.T) *site
	how   how
}

// how says what the run of an attack has to heed.
type how int

const (
	overNetwork how = 1 << iota // and so not in a bubble
	manyAtOnce                  // requests at the same time: see atOnce
)

// attacks are those of all files.
func attacks() []attack {
	return slices.Concat(textAttacks(), forgeries(), loginAttacks(), cookieAttacks(), requestAttacks())
}

// TestAttacks: none succeeds, and each would be noticed.
func TestAttacks(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			if a.how&manyAtOnce != 0 {
				atOnce(t)
			}
			if a.how&overNetwork != 0 {
				a.run(t)
			} else {
				synctest.Test(t, a.run)
			}
		})
	}
}

func (a *attack) run(t *testing.T) {
	faults := a.check(newSite(t))
	for _, fault := range faults[:min(len(faults), 10)] {
		t.Errorf("%.500s", fault)
	}
	if len(a.twins) == 0 {
		t.Error("nothing shows that it would be noticed")
	}
	for what, twin := range a.twins {
		if found := a.check(twin(t)); len(found) == 0 {
			t.Errorf("%s: it is not noticed", what)
		} else if testing.Verbose() {
			t.Logf("%s: %d faults, such as %.200s", what, len(found), found[0])
		}
	}
}

// found is what a check has found.
type found []string

func (f *found) add(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// weak is a site whose console lacks something.
func weak(weaken func(http.Handler) http.Handler) func(*testing.T) *site {
	return func(t *testing.T) *site {
		x := newSite(t)
		x.weakened = weaken
		weaken(x.console)
		return x
	}
}

// behind is a site whose console is behind another handler of the host's.
func behind(wrap func(http.Handler) http.Handler) func(*testing.T) *site {
	return func(t *testing.T) *site {
		x := newSite(t)
		x.host = wrap(x.host)
		return x
	}
}

// knowing is behind for a handler that has to know the store.
func knowing(wrap func(*site, http.Handler) http.Handler) func(*testing.T) *site {
	return func(t *testing.T) *site {
		x := newSite(t)
		x.host = wrap(x, x.host)
		return x
	}
}

// keeping is a site whose console has another store around the one of the site.
func keeping(wrap func(Store) xxljob.Store) func(*testing.T) *site {
	return func(t *testing.T) *site {
		return newSite(t, func(c *console.Config) { c.Store = wrap(c.Store.(Store)) })
	}
}

// rewritten is a handler that changes requests before another one has them.
func rewritten(change func(*http.Request)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r = r.Clone(r.Context())
			change(r)
			h.ServeHTTP(w, r)
		})
	}
}

// answered by other headers than the console has said.
func answering(change func(*http.Request, http.Header)) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(&headerWriter{w, func(header http.Header) { change(r, header) }, false}, r)
		})
	}
}

// headerWriter changes headers before they are sent.
type headerWriter struct {
	http.ResponseWriter
	change func(http.Header)
	done   bool
}

func (w *headerWriter) WriteHeader(status int) {
	if !w.done {
		w.done = true
		w.change(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *headerWriter) Write(p []byte) (int, error) {
	if !w.done {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// alone is a browser that follows nothing.
func (b *browser) alone() *browser {
	b.follows = false
	return b
}

// leads is where an answer sends a browser.
func (b *browser) leads() string { return b.res.Header.Get("Location") }

// paths is a pattern of a route with an id in it.
func pathOf(pattern string, id int64) string {
	return variable.ReplaceAllString(strings.Replace(pattern, "{name}", "x", 1), itoa(id))
}
