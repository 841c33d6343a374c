package console

// What pages are made of beside their text: styles, scripts, and the words of all languages. It
// is all in the binary.

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed asset template lang
var files embed.FS

// words are the catalogues.
func words() fs.FS {
	sub, _ := fs.Sub(files, "lang") // it is there, or the package would not compile
	return sub
}

// asset answers with a file that pages refer to.
func (q *request) asset() error {
	there, err := q.assets.Serve(q.W, q.R, q.values["name"])
	if q.Wrote = there; !there {
		return errNotThere
	}
	return err
}

// health says in one word whether the store answers.
func (q *request) health() error {
	h := q.W.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	word := "ok"
	if _, err := q.Store.Groups(q.ctx); err != nil {
		q.W.WriteHeader(http.StatusServiceUnavailable)
		word = "unavailable"
	}
	q.Wrote = true
	_, err := q.W.Write([]byte(word + "\n"))
	return err
}
