package apiextensions_test

import (
	"context"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/usercode"
)

func TestConfigure_ChangesTheKindsThatAreDefined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := newCluster(t, apiextensions.Config{Configure: func(cfg *registry.Config[unstructured.Unstructured]) {
			cfg.Admit = append(cfg.Admit, registry.AdmitFunc(func(_ context.Context, a *registry.Admission) error {
				asked++
				return nil
			}))
		}})
		c.define(definition("widgets", "Widget"))
		require.Zero(t, asked)
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		require.Equal(t, 1, asked)
	})
}

// A configuration that is wrong is wrong each time, so the definition says so, and can be deleted.
func TestConfigure_ThatMakesAWrongConfigurationIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{Configure: func(cfg *registry.Config[unstructured.Unstructured]) {
			cfg.Columns = append(cfg.Columns, registry.Column[unstructured.Unstructured]{})
		}})
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		time.Sleep(time.Minute) // of the bubble
		o := c.must(200, "GET", definitionsPath+"/"+widgetsName, "")
		require.Equal(t, []string{"NamesAccepted=False", "Established=False"}, conditions(o.object()))
		require.Contains(t, o.Body.String(), `"reason":"Invalid"`)
		require.Contains(t, o.Body.String(), "needs a Name, a Type and a Value")
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
	})
}

// A file opens each kind once at a time, so what a call that failed has opened must not stay open.
func TestConfigure_ThatDoesNotReturnLeavesNoStorageOpen(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() { panic("odd") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			file, err := bolt.Open(filepath.Join(t.TempDir(), "objects"), bolt.Options{})
			require.NoError(t, err)
			defer func() { require.NoError(t, file.Close()) }()
			cfg, failures := onFile(file), make(chan error, 100)
			var calls atomic.Int32
			cfg.Configure = func(of *registry.Config[unstructured.Unstructured]) {
				patiently(of)
				if calls.Add(1) == 1 {
					fail()
				}
			}
			cfg.OnError = func(err error) { failures <- err }
			c := newCluster(t, cfg)
			c.define(definition("widgets", "Widget"))
			require.Len(t, failures, 1)
			c.must(200, "GET", widgetsPath, "")
			require.NoError(t, c.definitions.Close())
		})
	}
}

// A panic names the function, and the definition that it was called for.
func TestConfigure_PanicsAreContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := make(chan error, 100)
		c := newCluster(t, apiextensions.Config{
			Configure: func(*registry.Config[unstructured.Unstructured]) { panic("odd") },
			OnError:   func(err error) { failures <- err },
		})
		c.must(201, "POST", definitionsPath, definition("widgets", "Widget"))
		panicked := (*usercode.PanicError)(nil)
		require.ErrorAs(t, <-failures, &panicked)
		require.Equal(t, "Config.Configure "+widgetsName, panicked.Func+" "+panicked.Key)
	})
}
