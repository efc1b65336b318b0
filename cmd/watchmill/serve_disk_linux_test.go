package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// breakDisk makes all writes of this process to an open file fail, as a disk does that is gone: its
// descriptors are ones for reading from then on.
func breakDisk(t *testing.T, path string) {
	t.Helper()
	unwritable, err := os.Open(path)
	require.NoError(t, err)
	defer unwritable.Close()
	descriptors, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	broken := 0
	for _, d := range descriptors {
		number, err := strconv.Atoi(d.Name())
		require.NoError(t, err)
		if target, _ := os.Readlink("/proc/self/fd/" + d.Name()); target == path && number != int(unwritable.Fd()) {
			require.NoError(t, syscall.Dup3(int(unwritable.Fd()), number, syscall.O_CLOEXEC))
			broken++
		}
	}
	require.NotZero(t, broken)
}

// A server whose disk has failed serves what it has, and says in its health and its log that it has
// to be restarted.
func TestServe_TellsThatItsDiskHasFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	log := newServedOutput()
	url, stop := serving(t, server.Options{Data: "bolt:" + path, Log: log})
	code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code, created)
	code, _ = call(t, "GET", url+"/livez", "", "")
	require.Equal(t, 200, code)
	breakDisk(t, path)
	for range 100 {
		code, failed := call(t, "POST", url+inDefault, "", `{"metadata":{"generateName":"b"},"spec":{"size":3}}`)
		require.Equal(t, http.StatusInternalServerError, code)
		require.Contains(t, failed, "writing failed")
	}
	code, _ = call(t, "GET", url+inDefault+"/a", "", "")
	require.Equal(t, 200, code)
	for _, path := range []string{"/livez", "/readyz", "/readyz/file"} {
		code, why := call(t, "GET", url+path, "", "")
		require.Equal(t, http.StatusInternalServerError, code)
		require.Contains(t, why, "[-]file failed: the server's log says why")
	}
	stop()
	require.Contains(t, log.String(), `msg="the file of objects has a failure"`)
	require.Contains(t, log.String(), `msg="a health check fails" check=file`)
	require.Less(t, strings.Count(log.String(), "\n"), 10, "not each time")
}
