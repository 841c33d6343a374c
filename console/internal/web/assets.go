package web

// Files that pages refer to: styles and scripts.

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// Assets are files that pages refer to, by a name that has the hash of what is in them: so a
// browser may keep them for ever.
type Assets struct {
	names map[string]string // of each file, as pages say it
	files map[string]assetFile
}

type assetFile struct {
	kind string
	data []byte
	zip  []byte // the same in gzip
}

// LoadAssets reads all files whose paths fit one of the patterns.
func LoadAssets(files fs.FS, patterns ...string) (a Assets, err error) {
	a = Assets{map[string]string{}, map[string]assetFile{}}
	for _, pattern := range patterns {
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
			a.files[name] = assetFile{mime.TypeByExtension(path.Ext(base)), data, Gzip(data)}
		}
	}
	return a, nil
}

// Name is the name by which pages refer to a file.
func (a *Assets) Name(file string) string { return a.names[file] }

// Serve answers with the file of a name, or reports that there is none.
func (a *Assets) Serve(w http.ResponseWriter, r *http.Request, name string) (there bool, err error) {
	f, there := a.files[name]
	if !there {
		return false, nil
	}
	h := w.Header()
	kind := f.kind
	switch path.Ext(name) { // whatever the machine believes
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	}
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	data := f.data
	if TakesGzip(r) { // there is nothing in it that is not for everybody
		data = f.zip
		h.Set("Content-Encoding", "gzip")
	}
	if r.Method != http.MethodHead {
		_, err = w.Write(data)
	}
	return true, err
}
