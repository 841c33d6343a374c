package console

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"time"
)

// RouteInfo is a line of the table of routes.
type RouteInfo struct {
	Method, Pattern       string
	Changes, Own, Control bool
}

// Routes are all routes there are.
func Routes() (list []RouteInfo) {
	for _, rt := range routes() {
		list = append(list, RouteInfo{rt.method, rt.pattern, rt.changes(), rt.own || rt.reads, rt.control})
	}
	return list
}

// OwnPage is ownPage.
var OwnPage = ownPage

// VisibleText is visibleText.
var VisibleText = visibleText

// SumUp is sumUp.
var SumUp = sumUp

// HashOf is hashOf.
var HashOf = hashOf

// Hashed is what is kept of a password.
func Hashed(password string) string {
	hash, err := newHasher().hash(context.Background(), password)
	if err != nil {
		panic(err)
	}
	return hash
}

// FieldInfo is a field of a job's form.
type FieldInfo struct {
	Name    string
	Options []string
}

// FormFields are the fields of a job's form.
func FormFields() (list []FieldInfo) {
	for _, g := range formGroups() {
		for _, f := range g.fields {
			info := FieldInfo{Name: f.name}
			if f.options != nil {
				info.Options = f.options()
			}
			list = append(list, info)
		}
	}
	return list
}

// ClientOf is where a request comes from, as it is recorded.
func ClientOf(trusted []netip.Prefix, r *http.Request) string { return clientOf(trusted, r).text }

// Pacer is a pacer.
type Pacer struct{ p *pacer }

// NewPacer makes one.
func NewPacer(every time.Duration, burst int) Pacer { return Pacer{&pacer{every: every, burst: burst}} }

// Wait is how long one has to wait with a question.
func (p Pacer) Wait(who string) time.Duration { return p.p.wait(who, time.Now()) }

// Kept is how many are remembered.
func (p Pacer) Kept() int { return len(p.p.by) }

// ExportedFields are the names of what a file has of a job.
func ExportedFields() (list []string) {
	for f := range reflect.TypeFor[exportedJob]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		list = append(list, name)
	}
	return list
}
