package console_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
	"github.com/xxljob/xxljob/internal/test/bent"
)

// requestAttacks are requests that no page of ours makes.
func requestAttacks() []attack {
	return []attack{
		{"ids of jobs and runs of others", idsOfOthers, map[string]func(*testing.T) *site{
			"the app is one that the user has": keeping(func(m Store) xxljob.Store { return bent.WholeOf(m, confused{m}) }),
			"what is hidden is forbidden":      behind(hiddenIsForbidden),
		}, 0},
		{"filters and places of lists that lead to what is of others", listsOfOthers, map[string]func(*testing.T) *site{"a store that does not look at apps": keeping(func(m Store) xxljob.Store { return bent.WholeOf(m, appless{m}) })}, 0},
		{"places of lists that nobody has made", madeUpPlaces, map[string]func(*testing.T) *site{"places that are no good are left out": behind(rewritten(func(r *http.Request) {
			q := r.URL.Query()
			q.Del("after")
			q.Del("before")
			r.URL.RawQuery = q.Encode()
		}))}, 0},
		{"paths that lead out of the console", oddPaths, map[string]func(*testing.T) *site{"files as they lie": behind(asFiles)}, 0},
		{"line feeds in what becomes a header", lineFeedsInHeaders, map[string]func(*testing.T) *site{"a host that sends on": behind(sendingOn)}, 0},
		{"another name of the host", otherHosts, map[string]func(*testing.T) *site{"whole addresses": behind(answering(func(r *http.Request, h http.Header) {
			if to := h.Get("Location"); to != "" {
				h.Set("Location", "http://"+r.Host+"/console/"+to)
			}
		}))}, 0},
		{"being sent elsewhere", sentElsewhere, map[string]func(*testing.T) *site{"a host that sends on": behind(sendingOn)}, 0},
		{"bodies without end, and what is packed into little", bombs, map[string]func(*testing.T) *site{"a host that reads all of it": behind(readingAll), "a host that unpacks": behind(unpacking)}, 0},
	}
}

// confused is a store in which all jobs are of an app that everybody sees.
type confused struct{ st Store }

func (c confused) Job(ctx context.Context, id int64) (xxljob.Job, error) {
	j, err := c.st.Job(ctx, id)
	j.App = "orders"
	return j, err
}

func (c confused) Run(ctx context.Context, id int64) (xxljob.Run, error) {
	r, err := c.st.Run(ctx, id)
	r.App = "orders"
	return r, err
}

// hiddenIsForbidden answers 403 for what a user does not see.
func hiddenIsForbidden(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code == http.StatusNotFound && !strings.Contains(r.URL.Path, "4711") {
			rec.Code = http.StatusForbidden
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// idsOfOthers: each route about a job or a run is answered to who does not see it as if it were
// not there, whatever the form says of its app.
func idsOfOthers(x *site) (faults found) {
	x.admin()
	job := x.job("billing", "secret one")
	run := x.run(job)
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Editor}}).alone()
	before := x.whole()
	for _, rt := range console.Routes() {
		if !strings.Contains(rt.Pattern, "{id}") {
			continue
		}
		id := job.ID
		if strings.HasPrefix(rt.Pattern, "runs/") {
			id = run.ID
		}
		form := url.Values{"app": {"orders"}, "App": {"orders"}, "name": {"secret one"}, "version": {"1"}}
		ann.send(rt.Method, "/console/"+pathOf(rt.Pattern, id)+"?app=orders", form)
		is, hidden := ann.res.StatusCode, withoutRequest(ann.body)
		ann.send(rt.Method, "/console/"+pathOf(rt.Pattern, 4711)+"?app=orders", form)
		faults.add(is != http.StatusNotFound || ann.res.StatusCode != http.StatusNotFound, "%s %s: status %d, and %d for nothing", rt.Method, rt.Pattern, is, ann.res.StatusCode)
		faults.add(hidden != strings.ReplaceAll(withoutRequest(ann.body), "4711", itoa(id)), "%s %s is not answered as if it were not there", rt.Method, rt.Pattern)
	}
	for _, form := range []url.Values{{"do": {"stop"}, "sure": {"yes"}, "id": {itoa(job.ID)}}, {"do": {"remove"}, "id": {itoa(job.ID)}, "count": {"1"}}} {
		ann.post("jobs/bulk", form)
		faults.add(strings.Contains(ann.body, "secret one"), "jobs/bulk names it")
	}
	ann.post("runs/bulk", url.Values{"do": {"kill"}, "id": {itoa(run.ID)}, "sure": {"yes"}})
	faults.add(strings.Contains(ann.body, "secret one"), "runs/bulk names it")
	ann.get("jobs/new?copy=" + itoa(job.ID))
	faults.add(strings.Contains(ann.body, "secret one"), "a copy names it")
	faults.add(x.whole() != before, "something has changed")
	return faults
}

// appless is a store that leaves out what it is told of apps.
type appless struct{ st Store }

func (a appless) SearchJobs(ctx context.Context, q xxljob.JobSearch) ([]xxljob.Job, error) {
	q.Apps = nil
	return a.st.SearchJobs(ctx, q)
}

func (a appless) SearchRuns(ctx context.Context, q xxljob.RunSearch) (xxljob.RunsFound, error) {
	q.Apps = nil
	return a.st.SearchRuns(ctx, q)
}

// placeIn is a place in a list, as its addresses have it.
func placeIn(order, at string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"o":"` + order + `","a":` + at + `}`))
}

// listsOfOthers: no filter and no place, however made, shows what one may not see.
func listsOfOthers(x *site) (faults found) {
	x.admin()
	mine, other := x.job("orders", "mine"), x.job("billing", "secret one")
	x.run(mine)
	run := x.run(other)
	ann := x.user(console.User{Name: "ann", Apps: map[string]console.Role{"orders": console.Viewer}})
	id := itoa(other.ID)
	places := []string{"after=" + placeIn("id", `{"ID":`+itoa(other.ID-1)+`,"App":"billing"}`), "order=id&after=" + placeIn("id", `{"ID":`+itoa(other.ID-1)+`}`), "after=" + placeIn("name", `{"Name":"secret on","App":"billing","ID":1}`), "before=" + placeIn("id", itoa(run.ID+1))}
	for _, page := range []string{"jobs", "runs", "changes", "timetable", "executors"} {
		for _, query := range append(places, "", "app=billing", "app=BILLING", "app=orders&app=billing", "app=billing&app=orders", "app=%2A", "app=*", "job="+id, "id="+id, "text=secret", "text="+itoa(run.ID), "handler=work", "state=waiting", "state=waiting&app=billing", "order=id", "order=next", "failing=yes") {
			ann.get(page + "?" + query)
			faults.add(strings.Contains(ann.body, "secret one") || strings.Contains(ann.body, "/"+id) || strings.Contains(ann.body, itoa(run.ID)+"</a>"), "%s?%s shows it", page, query)
		}
	}
	return faults
}

// madeUpPlaces are refused, and by no fault of ours.
func madeUpPlaces(x *site) (faults found) {
	root := x.admin()
	x.run(x.job("orders", "nightly"))
	for _, place := range []string{"x", "e30", "%00", "..%2F..", strings.Repeat("A", 9000), placeIn("id", "{}") + "=", placeIn("other", "1"), placeIn("id", `"x"`), placeIn("id", `[]`), placeIn("id", `1e400`), placeIn("id", `{"ID":"x"}`),
		placeIn("name", `{"Name":7}`), placeIn("name", `{"Name":"`+strings.Repeat("n", 300)+`"}`), placeIn("waiting", `{"Scheduled":"never"}`), placeIn("id", strings.Repeat("[", 3000)), base64.RawURLEncoding.EncodeToString([]byte("\xff\xfe{"))} {
		for _, page := range []string{"jobs?order=id&after=", "jobs?after=", "runs?before=", "runs?state=waiting&before=", "changes?before="} {
			root.alone().get(page + place)
			faults.add(root.res.StatusCode != http.StatusBadRequest, "%s%.40s: status %d", page, place, root.res.StatusCode)
		}
	}
	return faults
}

// oddPaths: nothing is read but the files of pages by the names that pages have for them, and
// there is one way to write a path.
func oddPaths(x *site) (faults found) {
	root := x.admin()
	job := x.job("orders", "nightly")
	id := itoa(job.ID)
	for _, p := range []string{"asset/console.css", "asset/..%2fconsole.go", "asset/%2e%2e/console.go", "asset/..%5cconsole.go", "asset/vendor/vendor.json", "asset/", "asset", "asset/console.css%00", "template/frame.html", "lang/en.json", "console.go", "go.mod", ".git/config",
		"jobs/" + id + "/", "jobs//" + id, "./jobs/" + id + "/.", "JOBS/" + id, "jobs/" + id + ";x=y", "jobs/" + id + "%2Fedit", "jobs/" + id + "%00", "jobs/0" + id, "jobs/+" + id, "jobs/" + id + ".0", "jobs/-1", "jobs/%20" + id, "jobs/" + id + "%20", "jobs/٣", "runs/1e3", "runs/0x10", "jobs/99999999999999999999"} {
		b := root.alone()
		b.send(http.MethodGet, "/console/"+p, nil)
		faults.add(b.res.StatusCode == http.StatusOK, "%s is answered", p)
		faults.add(b.res.StatusCode >= 500, "%s: status %d", p, b.res.StatusCode)
		faults.add(strings.Contains(b.body, "package console") || strings.Contains(b.body, "{{define"), "%s shows a file", p)
	}
	return faults
}

// asFiles serves what lies in the directory of the package.
func asFiles(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, is := strings.CutPrefix(r.URL.Path, "/console/asset/"); is {
			if data, err := os.ReadFile(path.Join("asset", name)); err == nil {
				_, _ = w.Write(data)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// lineFeedsInHeaders: nothing that a request says begins a header of the answer.
func lineFeedsInHeaders(x *site) (faults found) {
	root := x.admin()
	job := x.job("orders", "nightly")
	const evil = "jobs\r\nInjected: yes\r\nSet-Cookie: xxljob_session=eve"
	q := url.QueryEscape(evil)
	b := x.browser().alone()
	look := func(what string, b *browser) {
		for name, values := range b.res.Header {
			for _, v := range values {
				faults.add(strings.ContainsAny(v, "\r\n") || strings.Contains(name, "Injected") || name == "Set-Cookie" && strings.Contains(v, "eve"), "%s: %s is %q", what, name, v)
			}
		}
	}
	for _, to := range []string{"login?next=" + q, "jobs?x=" + q, "login?in=1&next=" + q, "runs?form=1&text=" + q, "changes?form=1&actor=" + q + "&since=" + q, "runs?text=" + q + "&seen=" + q, "jobs/" + itoa(job.ID) + "?said=" + q} {
		look(to, b.get(to))
		look(to, root.alone().get(to))
	}
	look("a login", b.post("login", url.Values{"name": {"root"}, "password": {password}, "next": {evil}}))
	for to, form := range map[string]url.Values{"look": {"next": {evil}, "zone": {"UTC"}}, "jobs/bulk": {"do": {"stop"}, "sure": {"yes"}, "id": {itoa(job.ID)}, "back": {evil}}, "jobs/" + itoa(job.ID) + "/trigger": {"key": {evil}, "tz": {evil}}, "logout": {"next": {evil}}} {
		look(to, root.alone().post(to, form))
	}
	for _, language := range []string{evil, "zh-CN\r\nX: y"} {
		root.header = http.Header{"Accept-Language": {language}, "X-Request-Id": {evil}, "X-Forwarded-Proto": {evil}, "X-Forwarded-Host": {evil}, "Hx-Request": {evil}}
		look("its headers", root.alone().get("jobs"))
	}
	return faults
}

// sendingOn is a host that sends browsers on to whatever is asked for.
func sendingOn(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		next := form.Get("next") + r.URL.Query().Get("next")
		h.ServeHTTP(&headerWriter{w, func(header http.Header) {
			if next != "" && header.Get("Location") != "" {
				header.Set("Location", next)
			}
		}, false}, r)
	})
}

// otherHosts: no address of ours has the name in it that a request says the host has.
func otherHosts(x *site) (faults found) {
	root := x.admin()
	job := x.job("orders", "nightly")
	for _, to := range []string{"", "jobs", "jobs/" + itoa(job.ID), "login", "logout", "runs?form=1&app=x"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequest(method, "http://host.example/console/"+to, strings.NewReader(""))
			r.Host = "evil.example"
			for name, value := range map[string]string{"X-Forwarded-Host": "evil.example", "X-Host": "evil.example", "Forwarded": "host=evil.example", "X-Original-Url": "/evil.example", "X-Rewrite-Url": "/evil.example", "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"} {
				r.Header.Set(name, value)
			}
			for _, c := range root.cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			x.host.ServeHTTP(w, r)
			faults.add(strings.Contains(w.Body.String(), "evil.example") || strings.Contains(fmt.Sprint(w.Header()), "evil.example"), "%s %s names it: %v", method, to, w.Header())
		}
	}
	return faults
}

// sentElsewhere: one is sent to pages of the console and nowhere else.
func sentElsewhere(x *site) (faults found) {
	x.admin()
	console.WithHashes(x.console, func(uint32, uint32) {})
	u := must1(x.store.User(x.Context(), "root"))
	u.Password = console.HashedBy(x.console, password)
	must1(x.store.UpdateUser(x.Context(), u))
	at := must1(url.Parse("http://host.example/console/login"))
	for _, next := range []string{"//evil.example", "https://evil.example/", "/etc", "../../evil", "..", `\\evil.example`, `/\evil.example`, "javascript:alert(1)", "jobs/../../x", "x:y", " //evil.example", "\t//evil.example", "%2F%2Fevil.example", "jobs/%2e%2e/%2e%2e/%2e%2e/x", "jobs\\..\\..\\x", "//evil.example/console/", "http:evil.example", "?next=//evil.example", "#//evil.example", "///evil.example", "https:/evil.example", "jobs/..;/..;/x", "@evil.example", ".//evil.example"} {
		for what, send := range map[string]func(*browser){
			"a login": func(b *browser) {
				b.post("login", url.Values{"name": {"root"}, "password": {password}, "next": {next}})
			},
			"a look": func(b *browser) { b.post("look", url.Values{"theme": {"dark"}, "next": {next}}) },
			"a page of the login": func(b *browser) {
				b.cookies["xxljob_session"] = &http.Cookie{Name: "xxljob_session", Value: "root is logged in"}
				b.get("login?next=" + url.QueryEscape(next))
			},
		} {
			_, _ = x.store.AddSession(x.Context(), sessionOf("root"), anHour)
			b := x.browser().alone()
			send(b)
			for range 3 { // on the way there may be a page of ours
				to, err := at.Parse(b.leads())
				if err != nil || to.Host != "host.example" || to.Scheme != "http" || !strings.HasPrefix(path.Clean(to.Path)+"/", "/console/") {
					faults.add(true, "%s with the next page %q leads to %v, %v", what, next, to, err)
					break
				}
				if b.leads() == "" || to.Path != "/console/login" {
					break
				}
				b.send(http.MethodGet, to.RequestURI(), nil)
			}
		}
	}
	return faults
}

// counting is a body without end that says how much of it was read.
type counting struct {
	part []byte
	most int
	read int
}

func (c *counting) Read(p []byte) (int, error) {
	if c.read >= c.most {
		return 0, io.EOF
	}
	n := copy(p, c.part)
	c.read += n
	return n, nil
}

// bombs: no more of a body is read than may be sent, and nothing is unpacked.
func bombs(x *site) (faults found) {
	root := x.admin()
	job := x.job("orders", "nightly")
	before := x.whole()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write(append([]byte("do=stop&sure=yes&id="+itoa(job.ID)+"&pad="), bytes.Repeat([]byte("0"), 4<<20)...))
	must(x.T, zip.Close())
	for what, body := range map[string]*counting{"without end": {[]byte("name=xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 8 << 20, 0}, "of very many fields": {[]byte("a=&"), 8 << 20, 0}, "of escapes": {[]byte("%41%41%41"), 8 << 20, 0}, "packed": {packed.Bytes(), packed.Len(), 0}} {
		for _, to := range []string{"jobs/new", "jobs/bulk", "look", "login", "jobs/" + itoa(job.ID) + "/edit"} {
			body.read = 0
			r := httptest.NewRequest(http.MethodPost, "http://host.example/console/"+to, body)
			r.ContentLength = -1
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			if what == "packed" {
				r.Header.Set("Content-Encoding", "gzip")
			}
			for _, c := range root.cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			x.host.ServeHTTP(w, r)
			faults.add(w.Code < 400 || w.Code >= 500, "a body %s for %s: status %d", what, to, w.Code)
			faults.add(body.read > 1<<20+64<<10, "%d bytes of a body %s were read for %s", body.read, what, to)
			faults.add(what == "packed" && w.Code == http.StatusRequestEntityTooLarge, "%s: it was unpacked", to)
		}
	}
	faults.add(x.whole() != before, "something has changed")
	return faults
}

// readingAll is a host that reads all of a request before it does anything.
func readingAll(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(all))
		h.ServeHTTP(w, r)
	})
}

// unpacking is a host that unpacks what is packed.
func unpacking(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Encoding") == "gzip" {
			if zip, err := gzip.NewReader(r.Body); err == nil {
				r.Body = io.NopCloser(zip)
			}
		}
		h.ServeHTTP(w, r)
	})
}
