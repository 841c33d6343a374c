package bench

import (
	"io"
	"log/slog"
	"sync"
)

// sharedLog is a writer that the scheduler, the executors and the bench write to at once.
type sharedLog struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// warnings writes what a scheduler or an executor warns of.
func warnings(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
