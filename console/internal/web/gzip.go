package web

// Answers that are compressed.

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

var packers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // there is such a level
	return w
}}

// Gzip is data in gzip.
func Gzip(data []byte) []byte {
	w := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = w.Write(data) // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}

// Gzipping compresses what is written to it on its way to out, until it is ended; that gives it back.
func Gzipping(out io.Writer) (w *gzip.Writer, end func() error) {
	w = packers.Get().(*gzip.Writer)
	w.Reset(out)
	return w, func() error {
		defer packers.Put(w)
		return w.Close()
	}
}

// TakesGzip reports whether who asks can unpack an answer.
func TakesGzip(r *http.Request) bool {
	for _, one := range strings.Split(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.TrimSpace(weight)
			return weight == "" || strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != ""
		}
	}
	return false
}
