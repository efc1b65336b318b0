package server

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// outliveHangUps keeps a SIGHUP from ending the server until the function that it returns is
// called. Operators send one to have files read again, as after a certificate was renewed or a log
// was rotated; the server does that without a signal, and says so. A SIGHUP that is ignored, as
// under nohup, stays so.
func outliveHangUps(log *slog.Logger) (stop func()) {
	if signal.Ignored(syscall.SIGHUP) {
		return func() {}
	}
	hangUps, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangUps, syscall.SIGHUP)
	go func() {
		defer close(ended)
		for range hangUps {
			log.Info("a SIGHUP changes nothing: files of TLS and of users are read again when they change, and the audit log is made again when it was renamed")
		}
	}()
	return func() {
		signal.Stop(hangUps)
		close(hangUps)
		<-ended
	}
}
