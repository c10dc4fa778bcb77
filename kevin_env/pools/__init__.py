"""The client's handle on judges: of this machine, of a judge server, of a Ray cluster.

`local.LocalPool` starts judge processes, `http.HttpPool` asks a judge server, `ray_pool.RayPool` a
cluster, and `scripted.ScriptedPool` answers from a script. All are a `kevin_env.judge.JudgePool`.
"""
