package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/usercode"
)

// etcdFlags are what connections to etcd may need.
type etcdFlags struct {
	CA           help.Given `name:"etcd-ca" placeholder:"FILE" help:"Certificates of the authorities that sign etcd's, which is then reached over TLS. The file is read at the start: add a new authority, and restart, before members have certificates of it."`
	Cert         help.Given `name:"etcd-cert" and:"etcd-cert" placeholder:"FILE" help:"Certificate to show to etcd over TLS, which may make a user of its common name. It is read again for each connection."`
	Key          help.Given `name:"etcd-key" and:"etcd-cert" placeholder:"FILE" help:"Private key of --etcd-cert."`
	User         help.Given `name:"etcd-user" and:"etcd-user" placeholder:"NAME" help:"User of etcd. Without TLS the password is sent readably."`
	PasswordFile help.Given `name:"etcd-password-file" and:"etcd-user" placeholder:"FILE" help:"The password of --etcd-user, without the end of its line. The file is read at the start."`
}

// open opens the storage of cfg, whose prefix is below that of a place that a flag names, of the form
// HOST:PORT[,HOST:PORT...][/PREFIX].
func (f *etcdFlags) open(ctx context.Context, flag, place, defaultPrefix string, cfg etcd.Config) (backend.Backend, error) {
	wrong := func(problem string) error {
		return &usercode.ConfigError{Field: flag, Problem: fmt.Sprintf("is etcd:%s, %s; give etcd:HOST:PORT[,HOST:PORT...][/PREFIX], such as etcd:127.0.0.1:2379/shop", place, problem)}
	}
	members, prefix, found := strings.Cut(place, "/")
	prefix = "/" + prefix
	if !found {
		prefix = defaultPrefix
	}
	cfg.Endpoints, cfg.Prefix, cfg.Username = strings.Split(members, ","), prefix+cfg.Prefix, string(f.User)
	for _, member := range cfg.Endpoints {
		if host, port, err := net.SplitHostPort(member); err != nil || host == "" || port == "" {
			return nil, wrong(fmt.Sprintf("where %q is not a host and a port", member))
		}
	}
	if strings.HasSuffix(prefix, "/") {
		return nil, wrong("which ends with a slash")
	}
	var err error
	if cfg.TLS, err = f.tls(); err != nil {
		return nil, err
	}
	if cfg.Password, err = f.password(); err != nil {
		return nil, err
	}
	b, err := etcd.New(ctx, cfg)
	var option *usercode.ConfigError
	if errors.As(err, &option) && option.Field == "Prefix" {
		return nil, wrong("whose prefix " + option.Problem)
	}
	return b, err
}

// unused returns an error if one of the flags is given, and the flag that says where objects are names another
// place than etcd: the objects that were meant for the cluster would be in memory by default, and end there.
func (f *etcdFlags) unused(flag, where string) error {
	if strings.HasPrefix(where, "etcd:") {
		return nil
	}
	for _, mine := range []struct {
		flag  string
		value help.Given
	}{{"--etcd-ca", f.CA}, {"--etcd-cert", f.Cert}, {"--etcd-user", f.User}} {
		if mine.value != "" {
			return &usercode.ConfigError{Field: mine.flag, Problem: fmt.Sprintf("is for objects in etcd, and %s is %s; give %[1]s etcd:HOST:PORT[,HOST:PORT...][/PREFIX]", flag, where)}
		}
	}
	return nil
}

// tls returns the configuration of TLS, nil without it.
func (f *etcdFlags) tls() (*tls.Config, error) {
	if f.CA == "" && f.Cert == "" {
		return nil, nil
	}
	cfg, err := transport.TLSInfo{TrustedCAFile: string(f.CA), CertFile: string(f.Cert), KeyFile: string(f.Key)}.ClientConfig()
	if err != nil {
		return nil, &usercode.ConfigError{Field: "--etcd-ca or --etcd-cert", Problem: "cannot be used: " + err.Error()}
	}
	return cfg, nil
}

// password returns the password of the user, empty if there is none.
func (f *etcdFlags) password() (string, error) {
	if f.PasswordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(string(f.PasswordFile))
	if err != nil {
		return "", &usercode.ConfigError{Field: "--etcd-password-file", Problem: "cannot be used: " + err.Error()}
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", &usercode.ConfigError{Field: "--etcd-password-file", Problem: fmt.Sprintf("is %s, which has no password", f.PasswordFile)}
	}
	return password, nil
}
