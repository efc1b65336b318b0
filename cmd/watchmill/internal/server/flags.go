package server

import (
	"io"
	"time"

	"github.com/watchmill/watchmill/serve"
)

// Flags are the flags of the command, for every program that has it.
type Flags struct {
	Listen            string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Where to listen (${default}); port 0 is any that is free. Other than loopback it needs TLS and users: --token-file or --client-ca."`
	CRD               []string      `name:"crd" placeholder:"FILE" help:"CustomResourceDefinition manifests of the kinds to serve. A replica needs none. Rules in CEL hold if the program is watchmill-etcd."`
	AllowCRDs         bool          `name:"allow-crds" help:"Let clients create CustomResourceDefinitions, whose kinds are served at once. They are in --data, too. No --crd is needed then."`
	Data              string        `default:"memory" placeholder:"WHERE" help:"Where objects live (${default}): memory; bolt:FILE, which lasts; or, if the program is watchmill-etcd, etcd:HOST:PORT[/PREFIX], which several servers share."`
	Snapshot          string        `placeholder:"FILE" help:"Write a snapshot of the file of --data to this file at the start, and again each --snapshot-every. It replaces the one before once it is whole, if that is of the same objects; watchmill store restore makes a file of it."`
	SnapshotEvery     time.Duration `placeholder:"D" help:"How often to write --snapshot, such as 15m (1h)."`
	Upstream          string        `placeholder:"URL" help:"Be a replica of this server: reads and watches here, writes there."`
	UpstreamTokenFile string        `placeholder:"FILE" help:"The bearer token for --upstream. The file is read for each request, so that the token may be renewed."`
	Kubeconfig        string        `placeholder:"FILE" help:"Write a kubeconfig for the server to this file."`
	TokenFile         string        `placeholder:"FILE" help:"Users, a line each: token,user,uid,\"group1,group2\". It is read again when it changes."`
	TLSCert           string        `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server. It is read again when it or the key changes."`
	TLSKey            string        `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	ClientCA          string        `name:"client-ca" placeholder:"FILE" help:"Certificates of the authorities that sign those of clients: a client that shows one is the user of its common name, with its organizations as groups. Needs TLS. It is read again when it changes."`
	Metrics           bool          `help:"Answer /metrics, for Prometheus, at the address of --listen; users may get it, if there are users."`
	Compress          bool          `help:"Compress answers above 128 KiB for clients that accept it, for slow networks."`
	Origin            []string      `placeholder:"URL" help:"An origin, such as https://console.example.com, whose pages may watch over WebSocket."`
	Host              []string      `placeholder:"NAME" help:"A name that clients may call the server by, beside addresses and localhost."`
}

// Help returns the text that --help adds.
func (*Flags) Help() string {
	return `At an interrupt or a SIGTERM the server drains: /readyz fails for 5 s, so that load balancers notice; then new requests are refused, and the watches end over 10 s. A second one ends it at once. While it still reads --data, which takes some twenty seconds for a million objects, it does not listen, and the first one ends it, with status 130.

Once the disk has failed in a write, nothing is written any more, and /livez and /readyz fail, so that a supervisor restarts the server, which then reads and checks the file of --data again. On a full disk reads go on, and writes fail until there is space. Standard error has a line for each failure, at most 60 of one level in a minute.

The exit status is 0 after it has drained, 1 if the server fails, and 2 for wrong usage or a bad manifest.`
}

// compressAbove is the size in bytes above which --compress compresses, which is the API
// server's.
const compressAbove = 128 << 10

// Options returns the options that the flags describe, for a program with these kinds of
// storage.
func (f *Flags) Options(storages Storages, out, log io.Writer) Options {
	o := Options{
		Listen: f.Listen, CRDs: f.CRD, AllowCRDs: f.AllowCRDs, Data: f.Data, Storages: storages, Upstream: f.Upstream, UpstreamTokenFile: f.UpstreamTokenFile,
		Kubeconfig: f.Kubeconfig, TokenFile: f.TokenFile, CertFile: f.TLSCert, KeyFile: f.TLSKey, ClientCAFile: f.ClientCA, Hosts: f.Host, Metrics: f.Metrics,
		Snapshot: f.Snapshot, SnapshotEvery: f.SnapshotEvery,
		Limits:  serve.Limits{ShutdownDelay: 5 * time.Second, DrainWatches: 10 * time.Second}, // as Help says
		Origins: f.Origin, Out: out, Log: log,
	}
	if f.Compress {
		o.CompressAbove = compressAbove
	}
	return o
}
