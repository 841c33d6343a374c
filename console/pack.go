package console

// Pages and their refreshes go compressed, and files that pages refer to were compressed once.

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

const (
	leastPacked = 1 << 10    // bytes: less is not worth it
	mostAMinute = 180 * 1000 // bytes that one viewer of a refreshed page is sent in a minute, and room for headers
	plainly     = "plain"    // in the address of a poll: it is answered as it is
)

var packers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // there is such a level
	return w
}}

// packed is data in gzip.
func packed(data []byte) []byte {
	w := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(data) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// packs reports whether the answer may be compressed: never where another site may have chosen
// what is asked for. Whoever can choose a part of a page and see how long it is when it is
// compressed could guess the rest of it.
func (q *request) packs() bool { return q.takesGzip() && q.fromHere() && q.query(plainly) == "" }

// fromHere reports whether the address was chosen by one of our own pages or by the user, as far
// as the browser says. Where it does not say from which site it asks, which over plain HTTP none
// does, it goes by the page that it names as the one before.
func (q *request) fromHere() bool {
	switch q.r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		before, err := url.Parse(q.r.Header.Get("Referer"))
		return err == nil && before.Host != "" && before.Host == q.r.Host
	}
	return false
}

// isForeign reports whether the browser says that another site has sent it here, or the page asks
// on behalf of one that was.
func (q *request) isForeign() bool {
	return q.r.Header.Get("Sec-Fetch-Site") != "" && !q.fromHere() || q.query(plainly) != ""
}

// takesGzip reports whether who asks can unpack an answer.
func (q *request) takesGzip() bool {
	for _, one := range strings.Split(strings.Join(q.r.Header["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.TrimSpace(weight)
			return weight == "" || strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != ""
		}
	}
	return false
}

// packsFile reports whether a file goes compressed, which it does like a page, and says so in the
// header. How long it is then is not known before it is sent.
func (q *request) packsFile() bool {
	h := q.w.Header()
	h.Set("Vary", varies)
	if !q.packs() {
		return false
	}
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	return true
}

// packing compresses what is written to it on its way to out, until it is ended; that gives it back.
func packing(out io.Writer) (w *gzip.Writer, end func() error) {
	w = packers.Get().(*gzip.Writer)
	w.Reset(out)
	return w, func() error {
		defer packers.Put(w)
		return w.Close()
	}
}

// send answers with data, compressed where that is worth it and may be.
func (q *request) send(status int, data []byte) {
	if len(data) >= leastPacked && q.packs() {
		data = packed(data)
		q.w.Header().Set("Content-Encoding", "gzip")
	}
	q.wrote = true
	q.w.WriteHeader(status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(data) // whoever has asked has gone, if anything
	}
}
