package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of the server of Config.Addr. Java admins keep connections for 90 s.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
)

// shutdownWait is how long requests under way have to end.
const shutdownWait = 5 * time.Second

// server is the server of Config.Addr.
type server struct {
	http   http.Server
	listen net.Listener
	log    *slog.Logger
	done   chan struct{} // closed when it serves no more
}

// listen opens Config.Addr. Nothing is answered before serve.
func (e *Executor) listen(ctx context.Context) (*server, error) {
	h, err := e.HTTPHandler()
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", e.cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("xxljob: executor: Config.Addr: %w", err)
	}
	return &server{
		http: http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(e.cfg.Logger.Handler(), slog.LevelDebug),
		},
		listen: l, log: e.cfg.Logger, done: make(chan struct{}),
	}, nil
}

// serve answers until close, which waits for it.
func (s *server) serve() {
	defer close(s.done)
	if err := s.http.Serve(s.listen); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("executor: the HTTP server ended unexpectedly", "error", err)
	}
}

// close lets requests under way end and ends the server. A peer that holds its
// connection open for longer is cut off, which is no fault of Stop's caller.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("executor: closing connections that did not end in time", "error", errors.Join(err, s.http.Close()))
	}
	<-s.done
}
