package console

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console/internal/login"
	"github.com/xxljob/xxljob/console/internal/look"
	"github.com/xxljob/xxljob/console/internal/web"
	"github.com/xxljob/xxljob/finding"
	"github.com/xxljob/xxljob/internal/slots"
)

// CauseWords are what the line of a cause says in a language, among these jobs.
func CauseWords(tag string, f finding.Finding, jobs ...xxljob.Job) string {
	read, err := readOnce()
	if err != nil {
		return err.Error()
	}
	q := &request{console: &console{}, user: &User{Name: "root", Admin: true}}
	q.look.Language, q.look.Zone = read.langs[tag], time.UTC
	l := q.causeLine(f, &finding.World{Jobs: jobs})
	return strings.Join([]string{l.Title, l.Error, l.Detail, l.Help}, " · ")
}

// RouteInfo is a line of the table of routes.
type RouteInfo struct {
	Method, Pattern       string
	Changes, Own, Control bool
}

// Routes are all routes there are.
func Routes() (list []RouteInfo) {
	for _, rt := range routes() {
		list = append(list, RouteInfo{rt.method, rt.pattern, rt.changes() && !rt.reads, rt.own || rt.reads, rt.control})
	}
	return list
}

// NewAlike is New for tests that make one console after the other: what is the same in all of them is
// read once, as pages take longer to read than most tests do otherwise.
func NewAlike(cfg Config) (http.Handler, error) { return newConsole(cfg, readOnce) }

var readOnce = sync.OnceValues(readPrinted)

// OwnPage is web.OwnPage.
var OwnPage = web.OwnPage

// VisibleText is web.Visible.
var VisibleText = web.Visible

// SumUp is sumUp.
var SumUp = sumUp

// Twin is look.Twin.
var Twin = look.Twin

// NoteOf is noteOf.
var NoteOf = noteOf

// HashOf is login.HashOf.
var HashOf = login.HashOf

// PairKey is what tries for a name from an address are counted by.
func PairKey(name, addr string) string {
	at := netip.MustParseAddr(addr)
	return login.PairKey(name, netip.PrefixFrom(at, at.BitLen()))
}

// Hashed is what is kept of a password.
func Hashed(password string) string {
	hash, err := login.NewHasher().Hash(context.Background(), slots.Holder{}, password)
	if err != nil {
		panic(err)
	}
	return hash
}

// FieldInfo is a field of a job's form.
type FieldInfo struct {
	Name        string
	Options     []string
	Check       bool
	Least, Upto int64 // of a number
	Span        bool  // of seconds
	Bytes       int   // of a text
}

// FormFields are the fields of a job's form.
func FormFields() (list []FieldInfo) {
	for _, g := range formGroups() {
		for _, f := range g.fields {
			info := FieldInfo{Name: f.name, Check: f.kind == aCheck, Least: f.least, Upto: f.upto, Span: f.span}
			if f.limit == "form.bytes" {
				info.Bytes = f.most
			}
			if f.options != nil {
				info.Options = f.options()
			}
			list = append(list, info)
		}
	}
	return list
}

// ClientOf is where a request comes from, as it is recorded.
func ClientOf(trusted []netip.Prefix, r *http.Request) string { return web.ClientOf(trusted, r).Text }

// Pacer is one of slots.
type Pacer struct{ p *slots.Pacer }

// NewPacer makes one.
func NewPacer(every time.Duration, burst int) Pacer { return Pacer{slots.NewPacer(every, burst)} }

// Wait is how long one has to wait with a question.
func (p Pacer) Wait(who string) time.Duration {
	_, wait := p.p.Turn(who, time.Now())
	return wait
}

// Kept is how many are remembered.
func (p Pacer) Kept() int { return p.p.Holders() }

// Shared says all that is kept of readings and regions for others.
func Shared(h http.Handler) string {
	var b strings.Builder
	h.(*console).live.Each(func(key string, value any) {
		b.WriteString(key)
		written(&b, reflect.ValueOf(value))
	})
	return b.String()
}

// written writes all texts of a value, and those that its slices have room for.
func written(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		b.WriteString(v.String() + "\n")
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			written(b, v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			written(b, f)
		}
	case reflect.Slice:
		v = v.Slice(0, v.Cap())
		for i := range v.Len() {
			written(b, v.Index(i))
		}
	}
}

// The consoles below lack something on purpose, so that the tests of attacks see what they are
// there for. Each takes a handler that New has made and returns it without what it is named for.

// WithoutEscaping shows texts of others as if they were ours.
func WithoutEscaping(h http.Handler) http.Handler {
	return replaced(h, template.FuncMap{"plain": func(s string) template.HTML { return template.HTML(s) }})
}

// WithoutSigns shows characters that are not seen as they are.
func WithoutSigns(h http.Handler) http.Handler {
	same := func(s string) string { return s }
	h = replaced(h, template.FuncMap{"plain": same})
	for _, l := range h.(*console).langs {
		h.(*console).pages[l.Tag].Funcs(template.FuncMap{"t": l.Text})
	}
	return h
}

// replaced has functions of pages replaced, in pages that no other console has.
func replaced(h http.Handler, f template.FuncMap) http.Handler {
	own, err := readPrinted()
	if err != nil {
		panic(err)
	}
	for _, set := range own.pages {
		set.Funcs(f)
	}
	h.(*console).printed = own
	return h
}

// WithoutOrigins takes requests from wherever they are sent.
func WithoutOrigins(h http.Handler) http.Handler {
	h.(*console).origins.AddInsecureBypassPattern("/")
	return h
}

// WithReadsThatChange answers to GET what is to be asked by POST alone.
func WithReadsThatChange(h http.Handler) http.Handler {
	c := h.(*console)
	for _, rt := range slices.Clone(c.table) {
		if found, _, _ := match(c.table, http.MethodGet, rt.pattern); rt.changes() && found == nil {
			rt.method = http.MethodGet
			c.table = append(c.table, rt)
		}
	}
	return h
}

// WithoutPolicy allows pages whatever browsers allow by themselves.
func WithoutPolicy(h http.Handler) http.Handler {
	h.(*console).policy = ""
	return h
}

// WithRoomForHashes makes as many hashes at once as somebody likes.
func WithRoomForHashes(h http.Handler) http.Handler {
	h.(*console).logins.Hasher.Places = slots.New(4000)
	return h
}

// lazyHashers are those that make no hash where there is none to compare it with.
var lazyHashers sync.Map

// WithoutHashesForNobody makes no hash for names that nobody has.
func WithoutHashesForNobody(h http.Handler) http.Handler {
	lazyHashers.Store(h.(*console).logins.Hasher, true)
	return h
}

// WithHashes has made called for each hash, with what it costs, and the hash be no more than a
// few of the letters of the password.
func WithHashes(h http.Handler, made func(passes, memory uint32)) {
	hs := h.(*console).logins.Hasher
	hs.Key = func(password, salt []byte, passes, memory uint32, lanes uint8, size uint32) []byte {
		if _, lazy := lazyHashers.Load(hs); !lazy || !bytes.Equal(salt, make([]byte, len(salt))) {
			made(passes, memory)
		}
		sum := make([]byte, size)
		copy(sum, password)
		return sum
	}
}

// CountsWithin has lists wait so long for what they count.
func CountsWithin(h http.Handler, d time.Duration) { h.(*console).counted.patience = d }

// WithHashesThatTake has each hash take so long.
func WithHashesThatTake(h http.Handler, d time.Duration) {
	hs := h.(*console).logins.Hasher
	key := hs.Key
	hs.Key = func(password, salt []byte, passes, memory uint32, lanes uint8, size uint32) []byte {
		time.Sleep(d)
		return key(password, salt, passes, memory, lanes, size)
	}
}

// remembered are the sums that argon2 has made in this process.
var remembered sync.Map

// RememberHashes has a console make each hash once: tests log in with the same passwords over and
// over, and what argon2 makes of the same is the same.
func RememberHashes(h http.Handler) {
	h.(*console).logins.Hasher.Key = func(password, salt []byte, passes, memory uint32, lanes uint8, size uint32) []byte {
		of := fmt.Sprintf("%q %q %d %d %d %d", password, salt, passes, memory, lanes, size)
		if sum, made := remembered.Load(of); made {
			return bytes.Clone(sum.([]byte))
		}
		sum := argon2.IDKey(password, salt, passes, memory, lanes, size)
		remembered.Store(of, bytes.Clone(sum))
		return sum
	}
}

// HashedBy is what a console keeps of a password.
func HashedBy(h http.Handler, password string) string {
	hash, err := h.(*console).logins.Hasher.Hash(context.Background(), slots.Holder{}, password)
	if err != nil {
		panic(err)
	}
	return hash
}

// ZoneBetween is the offset by which a log's times lie within a run.
func ZoneBetween(first, last, began, ended time.Time) (time.Duration, bool) {
	return zoneBetween(first, last, began, ended)
}
