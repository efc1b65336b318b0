package interop_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// encrypted is `watchmill serve` with TLS, a user with a token, and users with certificates.
type encrypted struct {
	url string
	ca  *authority
	// kubeconfig is the file that the server has written when it answers its first request.
	kubeconfig string
	stop       func()
}

func newEncrypted(t *testing.T) *encrypted {
	t.Helper()
	e := &encrypted{ca: newAuthority(t)}
	cert, key := e.ca.server(t)
	tokens := filepath.Join(e.ca.dir, "tokens")
	require.NoError(t, os.WriteFile(tokens, []byte("secret,alice,1,\"admins,users\"\n"), 0o600))
	e.kubeconfig = filepath.Join(e.ca.dir, "kubeconfig")
	manifest, err := filepath.Abs("../registry/crd/testdata/widgets.yaml")
	require.NoError(t, err)
	server := startProcess(t, e.ca.dir, "serve", "--crd", manifest, "--tls-cert", cert, "--tls-key", key,
		"--token-file", tokens, "--client-ca", e.ca.file, "--kubeconfig", e.kubeconfig)
	line, err := server.stdout.ReadString('\n')
	require.NoError(t, err)
	e.url = strings.TrimPrefix(strings.TrimSpace(line), "serving ")
	require.Regexp(t, `^https://127.0.0.1:\d+$`, e.url)
	e.stop = sync.OnceFunc(func() { server.stop(t) })
	return e
}

// config returns the configuration of a client that trusts the server.
func (e *encrypted) config(edit func(*rest.Config)) *rest.Config {
	cfg := &rest.Config{Host: e.url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: e.ca.file}}
	edit(cfg)
	return cfg
}

// show has a client show the certificate. The client gets the contents of the files: it
// would watch the files themselves for new certificates until its process ends.
func show(t *testing.T, certFile, keyFile string) func(*rest.Config) {
	t.Helper()
	cert, err := os.ReadFile(certFile)
	require.NoError(t, err)
	key, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	return func(c *rest.Config) { c.CertData, c.KeyData = cert, key }
}

// protocols notes the versions of HTTP of a client's answers.
type protocols struct {
	mu   sync.Mutex
	seen map[string]bool
	next http.RoundTripper
}

func (p *protocols) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.next.RoundTrip(r)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen[answer.Proto] = true
	}
	return answer, err
}

// Stock clients over TLS, with a token and with a certificate: a dynamic client writes, an
// informer watches, and kubectl changes what it sees. All of it goes over HTTP/2.
func TestTLS_ClientsWithTokensAndWithCertificates(t *testing.T) {
	t.Parallel() // with the other: most of the time the server waits for its clients to leave
	e := newEncrypted(t)
	defer e.stop()
	cert, key := e.ca.client(t, "bob")
	for name, user := range map[string]struct {
		config func(*rest.Config)
		args   []string
	}{
		"token": {
			func(c *rest.Config) { c.BearerToken = "secret" },
			[]string{"--kubeconfig", e.kubeconfig},
		},
		"certificate": {
			show(t, cert, key),
			[]string{"-s", e.url, "-n", "default", "--certificate-authority", e.ca.file, "--client-certificate", cert, "--client-key", key},
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := kubectls[0].path()
			require.NoError(t, err)
			k := &kubectl{t, program, user.args, t.TempDir()}
			cfg := e.config(user.config)
			used := &protocols{seen: map[string]bool{}}
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { used.next = next; return used })
			client, err := dynamic.NewForConfig(cfg)
			require.NoError(t, err)
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			_, err = client.Resource(widgetResource).Namespace("default").Create(ctx, unstructuredWidget(name, 1), metav1.CreateOptions{})
			require.NoError(t, err)

			seen := make(chan *unstructured.Unstructured, 16)
			factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "default", func(o *metav1.ListOptions) {
				o.FieldSelector = "metadata.name=" + name
			})
			_, err = factory.ForResource(widgetResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(o any) { seen <- o.(*unstructured.Unstructured) },
				UpdateFunc: func(_, o any) { seen <- o.(*unstructured.Unstructured) },
			})
			require.NoError(t, err)
			factory.Start(ctx.Done())
			defer factory.Shutdown()
			defer stop()
			require.EqualValues(t, 1, sizeOf(t, ctx, seen))
			require.Contains(t, k.run("patch", "widget", name, "--type=merge", "-p", `{"spec":{"size":7}}`), "patched")
			require.EqualValues(t, 7, sizeOf(t, ctx, seen))
			require.Regexp(t, name+` +7 `, k.run("get", "widgets", "--no-headers"))
			used.mu.Lock()
			defer used.mu.Unlock()
			require.Equal(t, map[string]bool{"HTTP/2.0": true}, used.seen)
		})
	}
}

// sizeOf returns the size of the next object that an informer sees.
func sizeOf(t *testing.T, ctx context.Context, seen <-chan *unstructured.Unstructured) int64 {
	t.Helper()
	select {
	case o := <-seen:
		size, _, err := unstructured.NestedInt64(o.Object, "spec", "size")
		require.NoError(t, err)
		return size
	case <-ctx.Done():
		require.Fail(t, "the informer sees nothing")
		return 0
	}
}

// Clients without credentials, or with wrong ones, are told so in the way that client-go
// and kubectl expect.
func TestTLS_StrangersAreRefused(t *testing.T) {
	t.Parallel()
	e := newEncrypted(t)
	defer e.stop()
	cert, key := newAuthority(t).client(t, "mallory")
	list := func(edit func(*rest.Config)) error {
		client, err := dynamic.NewForConfig(e.config(edit))
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		_, err = client.Resource(widgetResource).List(ctx, metav1.ListOptions{})
		return err
	}
	for name, edit := range map[string]func(*rest.Config){
		"no credentials": func(*rest.Config) {},
		"another token":  func(c *rest.Config) { c.BearerToken = "guess" },
	} {
		err := list(edit)
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", name, err)
	}
	err := list(show(t, cert, key))
	require.Error(t, err, "a certificate of another authority")
	require.False(t, errors.As(err, new(apierrors.APIStatus)), "the connection ends before there is an answer: %v", err)
	require.ErrorContains(t, list(func(c *rest.Config) { c.CAFile = newAuthority(t).file }), "certificate signed by unknown authority")

	program, err := kubectls[0].path()
	require.NoError(t, err)
	k := &kubectl{t, program, []string{"-s", e.url, "--certificate-authority", e.ca.file, "--token", "guess"}, t.TempDir()}
	out, err := k.try("", "get", "widgets")
	require.Error(t, err)
	require.Contains(t, out, "You must be logged in to the server")
}
