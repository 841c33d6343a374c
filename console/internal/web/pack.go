package web

// Answers, and which of them go compressed: pages and their refreshes; files that pages refer to were
// compressed once.

import (
	"net/http"
	"net/url"
)

const leastPacked = 1 << 10 // bytes: less is not worth it

// Plainly is in the address of a poll that is answered as it is.
const Plainly = "plain"

// varies are what answers depend on beside their address.
const varies = "HX-Request, HX-Request-Type, Cookie, Accept-Language, Accept-Encoding"

// packs reports whether the answer may be compressed: never where another site may have chosen
// what is asked for. Whoever can choose a part of a page and see how long it is when it is
// compressed could guess the rest of it.
func (x *Exchange) packs() bool { return TakesGzip(x.R) && x.fromHere() && x.Query(Plainly) == "" }

// fromHere reports whether the address was chosen by one of our own pages or by the user, as far
// as the browser says. Where it does not say from which site it asks, which over plain HTTP none
// does, it goes by the page that it names as the one before.
func (x *Exchange) fromHere() bool {
	switch x.R.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		before, err := url.Parse(x.R.Header.Get("Referer"))
		return err == nil && before.Host != "" && before.Host == x.R.Host
	}
	return false
}

// IsForeign reports whether the browser says that another site has sent it here, or the page asks
// on behalf of one that was.
func (x *Exchange) IsForeign() bool {
	return x.R.Header.Get("Sec-Fetch-Site") != "" && !x.fromHere() || x.Query(Plainly) != ""
}

// PacksFile reports whether a file goes compressed, which it does like a page, and says so in the
// header. How long it is then is not known before it is sent.
func (x *Exchange) PacksFile() bool {
	h := x.W.Header()
	h.Set("Vary", varies)
	if !x.packs() {
		return false
	}
	h.Set("Content-Encoding", "gzip")
	h.Del("Content-Length")
	return true
}

// SendPage answers with a page or a part of one, compressed where that is worth it and may be.
func (x *Exchange) SendPage(status int, data []byte) {
	h := x.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Vary", varies)
	if len(data) >= leastPacked && x.packs() {
		data = Gzip(data)
		h.Set("Content-Encoding", "gzip")
	}
	x.Wrote = true
	x.W.WriteHeader(status)
	if x.R.Method != http.MethodHead {
		_, _ = x.W.Write(data) // whoever has asked has gone, if anything
	}
}

// NothingNew answers who follows something that there is nothing to add.
func (x *Exchange) NothingNew() error {
	x.W.Header().Set("Vary", varies)
	x.Wrote = true
	x.W.WriteHeader(http.StatusNoContent)
	return nil
}
