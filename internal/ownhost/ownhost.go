// Package ownhost makes the host of an informer, an object cache, a controller, or a server's
// definitions or kinds that are given none, and closes it with them.
package ownhost

import (
	"sync"

	"github.com/watchmill/watchmill/engine"
)

// Host is a host that belongs to what runs on it. A nil Host stands for one that was given,
// which is left open: its methods have no effect.
type Host struct {
	host    *engine.Host
	closing sync.Once
}

// Of returns the host to run on: given or, if that is nil, a new one, which own closes.
func Of(given *engine.Host) (host *engine.Host, own *Host, err error) {
	if given != nil {
		return given, nil, nil
	}
	if host, err = engine.NewHost(engine.HostConfig{}); err != nil {
		return nil, nil, err
	}
	return host, &Host{host: host}, nil
}

// Close closes the host, once what runs on it has ended. It may be called again, and blocks
// as [engine.Host.Close] does.
func (h *Host) Close() error {
	if h == nil {
		return nil
	}
	return h.host.Close()
}

// CloseAfter closes the host in the background, once, when ended is closed and all actors
// that are left have ended.
func (h *Host) CloseAfter(ended <-chan struct{}) {
	if h == nil {
		return
	}
	h.closing.Do(func() {
		go func() {
			<-ended
			_ = h.host.Close() // stops the actors that are left, and may give up
			<-engine.SystemOf(h.host).Stopped()
			_ = h.host.Close()
		}()
	})
}
