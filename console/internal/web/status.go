package web

import "net/http"

// StatusWriter is a writer that remembers the status of what was answered.
type StatusWriter struct {
	http.ResponseWriter
	Status int // 0 before anything was
}

// Unwrap is for http.ResponseController.
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes the status on.
func (w *StatusWriter) WriteHeader(status int) {
	w.Status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write passes on what is written.
func (w *StatusWriter) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}
