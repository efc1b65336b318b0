package main

import (
	"context"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// serveCommand has the flags of watchmill serve.
type serveCommand struct {
	Listen            string   `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Where to listen; port 0 is any that is free. Other than loopback it needs TLS and tokens."`
	CRD               []string `name:"crd" placeholder:"FILE" help:"CustomResourceDefinition manifests of the kinds to serve. A replica needs none."`
	Data              string   `default:"memory" placeholder:"WHERE" help:"Where objects live: memory, or bolt:FILE, which lasts."`
	Upstream          string   `placeholder:"URL" help:"Be a replica of this server: reads and watches here, writes there."`
	UpstreamTokenFile string   `placeholder:"FILE" help:"The bearer token for --upstream."`
	Kubeconfig        string   `placeholder:"FILE" help:"Write a kubeconfig for the server to this file."`
	TokenFile         string   `placeholder:"FILE" help:"Users, a line each: token,user,uid,\"group1,group2\"."`
	TLSCert           string   `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server."`
	TLSKey            string   `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	Metrics           bool     `help:"Answer /metrics, for Prometheus, at the address of --listen; users with tokens may get it, if there are tokens."`
	Origin            []string `placeholder:"URL" help:"An origin, such as https://console.example.com, whose pages may watch over WebSocket."`
	Host              []string `placeholder:"NAME" help:"A name that clients may call the server by, beside addresses and localhost."`
}

// Run serves until an interrupt or a SIGTERM, and then drains: see [server.Run].
func (c *serveCommand) Run(ctx context.Context, to *streams) error {
	return server.Run(ctx, server.Options{
		Listen: c.Listen, CRDs: c.CRD, Data: c.Data, Upstream: c.Upstream, UpstreamTokenFile: c.UpstreamTokenFile, Kubeconfig: c.Kubeconfig,
		TokenFile: c.TokenFile, CertFile: c.TLSCert, KeyFile: c.TLSKey, Hosts: c.Host, Metrics: c.Metrics, Origins: c.Origin,
		Out: to.stdout, Log: to.stderr,
	})
}
