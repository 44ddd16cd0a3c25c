import os, signal


def test_kill(postgres_base, s3_bucket, private_postgres, request):
    p = private_postgres()
    print(p.server.port)
    os.kill(os.getppid(), signal.SIGKILL)
    import time

    time.sleep(3)
