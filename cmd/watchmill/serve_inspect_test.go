package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/inspect"
)

func TestServe_ShowsItsEnginesOnAPage(t *testing.T) {
	log := newServedOutput()
	url, stop := serving(t, server.Options{Data: "memory", Inspect: "127.0.0.1:0", Log: log})
	defer stop()
	code, created := call(t, "POST", url+inDefault, "", `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	require.Equal(t, 201, code)
	for _, version := range []string{"v1", "v1beta1"} { // each has a cache, which a list that is not older than the write waits for
		notOlder := strings.Replace(inDefault, "v1", version, 1) + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + revisionOf(created)
		for code := 0; code != 200; {
			code, _ = call(t, "GET", url+notOlder, "", "")
		}
	}
	page := pageAddress.FindString(log.String())
	code, text := call(t, "GET", page, "", "")
	require.Equal(t, 200, code)
	require.Contains(t, text, "<title>watchmill</title>")
	code, text = call(t, "GET", page+"state", "", "")
	require.Equal(t, 200, code)
	var state inspect.State
	require.NoError(t, json.Unmarshal([]byte(text), &state))
	require.Len(t, state.Engines, 3)
	for i, name := range []string{"customresourcedefinitions.apiextensions.k8s.io", "widgets.example.com", "widgets.example.com/v1beta1"} {
		require.Equal(t, name, state.Engines[i].Name)
		require.Equal(t, 1, state.Engines[i].Objects)
	}
}

func TestServe_NamesTheFlagOfAPageThatCannotBe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for address, c := range map[string]struct {
		status  int
		mention string
	}{
		"0.0.0.0:0":           {exitUsage, `--inspect is "0.0.0.0:0"; give a loopback address`},
		"":                    {exitUsage, "--inspect: is empty"},
		taken.Addr().String(): {exitFailed, "watchmill: --inspect: listen tcp " + taken.Addr().String()},
	} {
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--inspect", address)
		require.Equal(t, c.status, status, errs)
		require.Contains(t, errs, c.mention)
	}
}
