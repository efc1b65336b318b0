package serve

import (
	"net"
	"net/netip"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// guard refuses requests that a foreign web page could make a browser send.
func (c *call) guard() error {
	if !c.knownHost(c.r.Host) {
		return status.BadRequest("the host %q is not served: call the server by its address, or add the name to those of the server (serve.Config.Hosts, or watchmill serve --host)", c.r.Host)
	}
	if err := c.origins.Check(c.r); err != nil {
		return apierrors.NewForbidden(schema.GroupResource{}, "", err)
	}
	if c.cfg.WebSocket == nil {
		return nil
	}
	var err error
	c.upgrades, err = c.cfg.WebSocket.Wants(c.r)
	return err
}

// knownHost reports whether a Host header may be served. All IP addresses may: a page
// whose name resolves to this server (DNS rebinding) still sends its name as the host.
func (s *Server) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || s.hosts[name]
}
