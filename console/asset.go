package console

// What pages are made of beside their text: styles, scripts, and the words of all languages. It
// is all in the binary.

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed asset template lang
var files embed.FS

// words are the catalogues.
func words() fs.FS {
	sub, _ := fs.Sub(files, "lang") // it is there, or the package would not compile
	return sub
}

// assets are files that pages refer to, by a name that has the hash of what is in them: so a
// browser may keep them for ever.
type assets struct {
	names map[string]string // of each file, as pages say it
	files map[string]assetFile
}

type assetFile struct {
	kind string
	data []byte
	zip  []byte // the same in gzip
}

// loadAssets reads all of them.
func loadAssets() (a assets, err error) {
	a = assets{map[string]string{}, map[string]assetFile{}}
	for _, pattern := range []string{"asset/*.css", "asset/*.js", "asset/vendor/*.js"} {
		found, err := fs.Glob(files, pattern)
		if err != nil {
			return a, err
		}
		for _, file := range found {
			data, err := fs.ReadFile(files, file)
			if err != nil {
				return a, err
			}
			sum := sha256.Sum256(data)
			base := path.Base(file)
			name := hex.EncodeToString(sum[:8]) + "-" + base
			a.names[base] = name
			a.files[name] = assetFile{mime.TypeByExtension(path.Ext(base)), data, packed(data)}
		}
	}
	return a, nil
}

// asset answers with one of them.
func (q *request) asset() error {
	f, there := q.assets.files[q.values["name"]]
	if !there {
		return errNotThere
	}
	h := q.w.Header()
	kind := f.kind
	if kind == "" || strings.HasSuffix(q.values["name"], ".js") {
		kind = "text/javascript; charset=utf-8" // whatever the machine believes
	}
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	data := f.data
	if q.takesGzip() { // there is nothing in it that is not for everybody
		data = f.zip
		h.Set("Content-Encoding", "gzip")
	}
	q.wrote = true
	if q.r.Method != http.MethodHead {
		_, err := q.w.Write(data)
		return err
	}
	return nil
}

// health says in one word whether the store answers.
func (q *request) health() error {
	h := q.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	word := "ok"
	if _, err := q.Store.Groups(q.ctx); err != nil {
		q.w.WriteHeader(http.StatusServiceUnavailable)
		word = "unavailable"
	}
	q.wrote = true
	_, err := q.w.Write([]byte(word + "\n"))
	return err
}
