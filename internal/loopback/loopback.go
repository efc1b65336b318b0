// Package loopback says which hosts are this machine's own, so that a server which listens there is reached by
// no other machine:
//
//	localhost, 127.0.0.1, ::1 ──Is──▶ true
//	0.0.0.0, 192.0.2.1, a name ──Is──▶ false
package loopback

import (
	"net"
	"strings"
)

// Is reports whether a host, without a port, is localhost or an address of loopback.
func Is(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
