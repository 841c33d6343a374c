package console

// Pages and their refreshes go compressed, and files that pages refer to were compressed once.

import (
	"net/http"
	"net/url"

	"github.com/xxljob/xxljob/console/internal/web"
)

const (
	leastPacked = 1 << 10    // bytes: less is not worth it
	mostAMinute = 180 * 1000 // bytes that one viewer of a refreshed page is sent in a minute, and room for headers
	plainly     = "plain"    // in the address of a poll: it is answered as it is
)

// packs reports whether the answer may be compressed: never where another site may have chosen
// what is asked for. Whoever can choose a part of a page and see how long it is when it is
// compressed could guess the rest of it.
func (q *request) packs() bool { return web.TakesGzip(q.r) && q.fromHere() && q.query(plainly) == "" }

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

// send answers with data, compressed where that is worth it and may be.
func (q *request) send(status int, data []byte) {
	if len(data) >= leastPacked && q.packs() {
		data = web.Gzip(data)
		q.w.Header().Set("Content-Encoding", "gzip")
	}
	q.wrote = true
	q.w.WriteHeader(status)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(data) // whoever has asked has gone, if anything
	}
}
