package transport

import "net"

// Addresses returns how many addresses a listener of [Limit] counts the connections of.
func Addresses(l net.Listener) int {
	limited := l.(*limitedListener)
	limited.mu.Lock()
	defer limited.mu.Unlock()
	return len(limited.open)
}
