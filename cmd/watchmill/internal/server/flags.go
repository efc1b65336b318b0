package server

import (
	"fmt"
	"io"
	"time"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/serve"
)

// Flags are the flags of the command, for every program that has it.
type Flags struct {
	Listen                   string         `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Where to listen (${default}); port 0 is any that is free. Other than loopback it needs TLS and users: --token-file or --client-ca."`
	CRD                      help.GivenEach `name:"crd" placeholder:"FILE,..." help:"CustomResourceDefinition manifests of the kinds to serve. A replica needs none: it then has the preferred version of each kind of its origin, and follows the definitions there, if there are any. Only watchmill-etcd evaluates rules in CEL."`
	AllowCRDs                bool           `name:"allow-crds" help:"Let clients create CustomResourceDefinitions, whose kinds are served at once. They are in --data, too. No --crd is needed then."`
	CoreKinds                bool           `help:"Serve kinds of Kubernetes itself that most programs need: ConfigMaps, Secrets, Events, Leases and Namespaces, for Helm, leader election and kubectl create namespace, which are in --data, too. No --crd is needed then. Only watchmill-etcd has them."`
	EventTTL                 *time.Duration `name:"event-ttl" placeholder:"D" help:"How long an event of --core-kinds lives after its last change, such as 24h (1h)."`
	GarbageCollector         bool           `help:"A garbage collector, such as that of a kube-controller-manager, runs against the server: leave to it what becomes of the objects that a deleted one owns, as clients ask by kubectl delete --cascade=orphan or foreground. Without the flag it deletes those that were to be orphaned. With the flag, but without a collector, an object that is deleted so stays."`
	Data                     string         `default:"memory" placeholder:"WHERE" help:"Where objects live (${default}): memory; bolt:FILE, which lasts; or, if the program is watchmill-etcd, etcd:HOST:PORT[,HOST:PORT...][/PREFIX], which several servers share."`
	Snapshot                 help.Given     `placeholder:"FILE" help:"Write a snapshot of the file of --data to this file, at the start and each --snapshot-every. Once it is whole it replaces the one before, if that is of the same objects. watchmill store restore makes a file of it."`
	SnapshotEvery            *time.Duration `placeholder:"D" help:"How often to write --snapshot, such as 15m (1h)."`
	Upstream                 help.Given     `placeholder:"URL" help:"Be a replica of this server: reads and watches here, writes there."`
	UpstreamCA               help.Given     `name:"upstream-ca" placeholder:"FILE" help:"Certificates of the authorities that may have signed that of --upstream, if a private one has. It is read at the start."`
	UpstreamCert             help.Given     `placeholder:"FILE" help:"Certificate to show to --upstream. It is read again for a new connection when it or the key has changed."`
	UpstreamKey              help.Given     `placeholder:"FILE" help:"Private key of --upstream-cert."`
	UpstreamTokenFile        help.Given     `placeholder:"FILE" help:"The bearer token for --upstream. The file is read for each request, so that the token may be renewed. It is sent readably to a URL of http://."`
	Kubeconfig               help.Given     `placeholder:"FILE" help:"Write a kubeconfig for the server to this file."`
	TokenFile                help.Given     `placeholder:"FILE" help:"Users, a line each: token,user,uid,\"group1,group2\". kubectl sends tokens over TLS alone. The file is read again when it changes. While it is gone, or has no token, those that it had stay valid: to lock all out, leave a token that nobody knows."`
	TLSCert                  help.Given     `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server. It is read again when it or the key changes."`
	TLSKey                   help.Given     `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate."`
	ClientCA                 help.Given     `name:"client-ca" placeholder:"FILE" help:"Certificates of the authorities that sign those of clients. A client's user is the common name of its certificate, and its groups are the organizations. Needs TLS. It is read again when it changes."`
	AuditLog                 help.Given     `placeholder:"FILE" help:"Append a line of JSON to this file for each request for a resource when it ends, and for each that was refused. If the file is renamed, as by logrotate, it is made again. No request waits for the disk: lines that cannot be written are counted."`
	Metrics                  bool           `help:"Answer /metrics, for Prometheus, at the address of --listen; users may get it, if there are users."`
	Inspect                  help.Given     `placeholder:"ADDR" help:"Show the engines on a page, with the slowest watches on top, at a loopback address such as 127.0.0.1:6061. All users of this machine may read it: it shows names of users and selectors, and no objects."`
	Compress                 bool           `help:"Compress answers above 128 KiB for clients that accept it, for slow networks."`
	MaxReads                 int            `default:"400" placeholder:"N" help:"How many requests that only read may be in flight (${default}), not counting watches. If there are users, one has at most half of them."`
	MaxWrites                int            `default:"200" placeholder:"N" help:"How many requests that write may be in flight (${default}). If there are users, one has at most half of them."`
	MaxWatches               int            `default:"10000" placeholder:"N" help:"How many watches there may be (${default})."`
	MaxWatchesPerUser        *int           `placeholder:"N" help:"How many watches one user may have (1000, or half of --max-watches if that is less; as many as there may be, if there are no users)."`
	MaxConnectionsPerAddress *int           `placeholder:"N" help:"How many connections one address may have (12000, or three quarters of the files that the process may have open, if that is less). Raise it behind a load balancer, where all clients may have one address."`
	ShutdownDelay            time.Duration  `default:"5s" placeholder:"D" help:"How long to serve on at an interrupt or a SIGTERM, while /readyz fails (${default})."`
	DrainWatches             time.Duration  `default:"10s" placeholder:"D" help:"Over how long to end the watches then (${default})."`
	Origin                   help.GivenEach `placeholder:"URL,..." help:"An origin, such as https://console.example.com, whose pages may watch over WebSocket."`
	Host                     help.GivenEach `placeholder:"NAME,..." help:"A name that clients may call the server by, besides addresses and localhost."`
}

// Help returns the text that --help adds.
func (*Flags) Help() string {
	return `To serve the kinds of a manifest, and keep their objects in a file:

    watchmill serve --crd widgets.yaml --data bolt:widgets.db

At the start the server reads the file of --data, which takes some twenty seconds for a million objects. It does not listen before that.

At an interrupt or a SIGTERM the server drains. /readyz fails for the time of --shutdown-delay, so that load balancers notice. Then new requests are refused, and the watches end over the time of --drain-watches. Requests in progress have a minute more, and connections another 5 seconds: by default that is 80 seconds at most, where Kubernetes gives a pod 30. A second signal ends the server at once. A SIGHUP changes nothing: files that are read again need no signal. Nor does the end of the program that reads the log.

Each user may do everything, whatever its groups: users matter to the limits and the audit log alone. Clients that ask what a user may do, as kubectl auth can-i and consoles such as k9s do, learn that; at a replica they learn of writes what the server of --upstream lets the replica do. A program of your own can permit less, by serve.Config.Authorize.

On a full disk reads go on, and writes fail until there is space. Once the disk has failed in a write, nothing is written any more, and /livez and /readyz fail, so that a supervisor restarts the server. It then reads and checks the file again. Before that, have the system forget what it has of the file in memory, which may not be on the disk: on Linux by dd if=FILE iflag=nocache count=0. Standard error has a line for each failure, at most 60 of one level in a minute, and besides these the first of each of up to 30 other causes.

The exit status is

    0    after the server has drained
    1    if it fails, for example because the disk is full, or the file of
         --data is damaged or in use
    2    for wrong usage, a bad manifest, or another file that cannot be used
    130  after a signal while it does not listen yet`
}

// Validate returns an error for a limit that cannot be. The parser of flags calls it.
func (f *Flags) Validate() error {
	for _, limit := range []struct {
		flag  string
		value int
	}{
		{"--max-reads", f.MaxReads}, {"--max-writes", f.MaxWrites}, {"--max-watches", f.MaxWatches},
	} {
		if limit.value < 1 {
			return fmt.Errorf("%s is %d; give 1 or more", limit.flag, limit.value)
		}
	}
	if n := f.MaxWatchesPerUser; n != nil && *n < 1 {
		return fmt.Errorf("--max-watches-per-user is %d; give 1 or more", *n)
	}
	if n := f.MaxWatchesPerUser; n != nil && *n > f.MaxWatches {
		return fmt.Errorf("--max-watches-per-user is %d, more than --max-watches, which is %d; give no more, or raise that", *n, f.MaxWatches)
	}
	if n := f.MaxConnectionsPerAddress; n != nil && *n < 1 {
		return fmt.Errorf("--max-connections-per-address is %d; give 1 or more", *n)
	}
	if every := f.SnapshotEvery; every != nil && *every == 0 {
		return fmt.Errorf("--snapshot-every is 0s; give %v or more", minSnapshotEvery) // zero would be the default
	}
	if ttl := f.EventTTL; ttl != nil && (*ttl < minEventTTL || *ttl > maxEventTTL) {
		return fmt.Errorf("--event-ttl is %v; give %v or more, and at most 100 years", *ttl, minEventTTL)
	}
	if f.ShutdownDelay < 0 {
		return fmt.Errorf("--shutdown-delay is %v; give 0s or more", f.ShutdownDelay)
	}
	if f.DrainWatches < 0 {
		return fmt.Errorf("--drain-watches is %v; give 0s or more", f.DrainWatches)
	}
	return nil
}

// minEventTTL and maxEventTTL are the bounds of --event-ttl: etcd counts it in seconds, and keeps none for longer.
const (
	minEventTTL = time.Second
	maxEventTTL = 100 * 365 * 24 * time.Hour
)

// compressAbove is the size in bytes above which --compress compresses, the same as in the API
// server.
const compressAbove = 128 << 10

// Options returns the options that the flags describe, for a program with these kinds of
// storage.
func (f *Flags) Options(storages Storages, out, log io.Writer) Options {
	o := Options{
		Listen: f.Listen, CRDs: f.CRD, AllowCRDs: f.AllowCRDs, CoreKinds: f.CoreKinds, GarbageCollector: f.GarbageCollector, Data: f.Data, Storages: storages, Upstream: string(f.Upstream), UpstreamTokenFile: string(f.UpstreamTokenFile),
		UpstreamCAFile: string(f.UpstreamCA), UpstreamCertFile: string(f.UpstreamCert), UpstreamKeyFile: string(f.UpstreamKey),
		Kubeconfig: string(f.Kubeconfig), TokenFile: string(f.TokenFile), CertFile: string(f.TLSCert), KeyFile: string(f.TLSKey), ClientCAFile: string(f.ClientCA), Hosts: f.Host, Metrics: f.Metrics,
		Snapshot: string(f.Snapshot), AuditLog: string(f.AuditLog), Inspect: string(f.Inspect),
		Limits: serve.Limits{
			Reads: f.MaxReads, Writes: f.MaxWrites, Watches: f.MaxWatches,
			ShutdownDelay: max(f.ShutdownDelay, 1), DrainWatches: max(f.DrainWatches, 1), // zero would be the default
		},
		Origins: f.Origin, Out: out, Log: log,
	}
	if f.EventTTL != nil {
		o.EventTTL = *f.EventTTL
	}
	if f.SnapshotEvery != nil {
		o.SnapshotEvery = *f.SnapshotEvery
	}
	if f.MaxWatchesPerUser != nil {
		o.Limits.WatchesPerUser = *f.MaxWatchesPerUser
	}
	if f.MaxConnectionsPerAddress != nil {
		o.Limits.ConnectionsPerAddress = *f.MaxConnectionsPerAddress
	}
	if f.Compress {
		o.CompressAbove = compressAbove
	}
	return o
}
